"""Reading XLA's optimised programs (HLO text): how much work one round of the loop is.

A kernel is an instruction that XLA runs by itself: a fusion, or one that was not fused. On a GPU
each is a launch; where the whole loop is one native function, it is a piece of that function. The
bytes of a kernel are those of its results and operands; where it only slices
or gathers from an operand, or updates a part of it in place, that part is counted. Loops inside a
round count as often as they run if XLA knows the number, otherwise once (and the kernels of a
native function once in any case).
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

FREE = frozenset(
    """parameter get-tuple-element tuple bitcast constant after-all partition-id replica-id
    opt-barrier""".split()
)
PARTIAL_READS = frozenset(("dynamic-slice", "gather", "slice"))
PARTIAL_WRITES = {"dynamic-update-slice": 1, "scatter": 2}  # which operand is the part
ITEM_BYTES = {"pred": 1, "bf16": 2, "token": 0}
ITEM = re.compile(r"^\s*(?:ROOT )?%([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*?)\)(.*)$")
HEADER = re.compile(r"^(?:ENTRY )?%([\w.\-]+) \(.*\{$")
CALLED = re.compile(r"(?:calls|body|to_apply|true_computation|false_computation)=%([\w.\-]+)")
BRANCHES = re.compile(r"branch_computations=\{(.*?)\}")
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
NATIVE = 'xla_cpu_small_call="true"'


@dataclass
class Cost:
    """Of one round."""

    kernels: float = 0
    bytes: float = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.kernels + other.kernels, self.bytes + other.bytes)


@dataclass
class Instruction:
    """name = shape opcode(operands) attributes"""

    name: str
    shape: str
    opcode: str
    operands: list[str]
    attributes: str

    @cached_property
    def called(self) -> list[str]:
        """The computations that it runs; of a loop the body."""
        branches = "".join(BRANCHES.findall(self.attributes))
        return CALLED.findall(self.attributes) + re.findall(r"%([\w.\-]+)", branches)

    @cached_property
    def size(self) -> int:
        """Bytes of the result."""
        return sum(
            math.prod(int(n) for n in dims.split(",") if n) * _item_bytes(kind)
            for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", self.shape)
        )


def _item_bytes(kind: str) -> int:
    bits = re.search(r"\d+$", kind)
    return ITEM_BYTES[kind] if kind in ITEM_BYTES or bits is None else int(bits[0]) // 8


@dataclass
class Computation:
    """Its instructions in order; the last one is the result."""

    items: list[Instruction] = field(default_factory=list)

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        return {item.name: item for item in self.items}

    def behind(self, name: str) -> Instruction:
        """The instruction behind a name, through changes of shape."""
        item = self.by_name[name]
        return self.behind(item.operands[0]) if item.opcode in ("bitcast", "reshape") else item

    def results(self) -> list[Instruction]:
        root = self.behind(self.items[-1].name)
        names = root.operands if root.opcode == "tuple" else [root.name]
        return [self.behind(name) for name in names]

    def written(self) -> float:
        """Bytes of the results, of updates in place only the part."""
        return sum(self._part(item) for item in self.results())

    def _part(self, item: Instruction) -> int:
        place = PARTIAL_WRITES.get(item.opcode)
        return item.size if place is None else self.by_name[item.operands[place]].size

    def read(self) -> float:
        """Bytes of the parameters, of those only sliced or updated in place the part."""
        return sum(self._read_of(item) for item in self.items if item.opcode == "parameter")

    def _read_of(self, parameter: Instruction) -> int:
        uses = list(self._uses(parameter.name))
        if all(use.opcode in PARTIAL_READS | set(PARTIAL_WRITES) for use in uses):
            parts = (self._part(use) for use in uses)
            return min(parameter.size, sum(parts))
        return parameter.size

    def _uses(self, name: str) -> Iterator[Instruction]:
        """Where a value is used, through changes of shape; as an index it counts as read whole."""
        for item in self.items:
            if name in item.operands:
                if item.opcode in ("bitcast", "reshape"):
                    yield from self._uses(item.name)
                elif item.operands[0] == name:
                    yield item
                else:
                    yield Instruction(item.name, item.shape, "operand", [], "")


class Program:
    """An HLO module."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, Computation] = {}
        current = Computation()
        for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
            if header := HEADER.match(line):
                current = self.computations.setdefault(header[1], Computation())
            elif match := ITEM.match(line):
                name, shape, opcode, operands, attributes = match.groups()
                names = re.findall(r"%([\w.\-]+)", operands)
                current.items.append(Instruction(name, shape, opcode, names, attributes))

    @cached_property
    def loop(self) -> Instruction | None:
        """The loop over rounds: that whose body has the most kernels of its own."""
        loops = [
            item
            for computation in self.computations.values()
            for item in computation.items
            if item.opcode == "while"
        ]
        return max(loops, key=lambda item: self._own_kernels(self._body(item)), default=None)

    @cached_property
    def is_native(self) -> bool:
        """Is the loop over rounds one native function?"""
        return self.loop is not None and NATIVE in self.loop.attributes

    def round(self) -> Cost:
        return Cost() if self.loop is None else self._cost_of(self.loop.called[0])

    def _body(self, item: Instruction) -> Computation:
        return self.computations[item.called[0]]

    def _own_kernels(self, body: Computation) -> int:
        return sum(item.opcode not in FREE for item in body.items)

    def _cost_of(self, name: str) -> Cost:
        computation = self.computations[name]
        return sum((self._cost(computation, item) for item in computation.items), Cost())

    def _cost(self, inside: Computation, item: Instruction) -> Cost:
        match item.opcode:
            case opcode if opcode in FREE:
                return Cost()
            case "while":
                return self._repeated(self._cost_of(item.called[0]), item)
            case "call":
                return self._cost_of(item.called[0])
            case "conditional":
                return max((self._cost_of(n) for n in item.called), key=lambda cost: cost.bytes)
            case "fusion":
                fused = self._body(item)
                return Cost(1, fused.read() + fused.written())
        operands = [inside.by_name[name] for name in item.operands]
        if item.opcode in PARTIAL_READS:
            return Cost(1, 2 * item.size)
        if item.opcode in PARTIAL_WRITES:
            return Cost(1, 2 * operands[PARTIAL_WRITES[item.opcode]].size)
        return Cost(1, item.size + sum(operand.size for operand in operands))

    def _repeated(self, cost: Cost, loop: Instruction) -> Cost:
        found = TRIPS.search(loop.attributes)
        trips = int(found[1]) if found else 1
        return Cost(cost.kernels * (1 if self.is_native else trips), cost.bytes * trips)
