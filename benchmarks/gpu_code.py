"""Reads compiled code of GPUs, PTX or SASS: its loops, and what their instructions take."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# Cycles for which an instruction of a warp keeps its pipe, of one of the four schedulers.
CYCLES = {"special": 8, "memory": 4, "other": 2}
# About, for the cautious estimate: cycles until a result can be used, and until memory answers.
WAIT, WAIT_FOR_MEMORY = 4, 700
REGISTERS = 1 << 14  # of a scheduler; a warp takes them for 32 threads, in eights for each
BLOCKS = 32 // 4  # that a scheduler holds at most, one of the four of a multiprocessor
FLOAT_OF_SASS = ("FADD", "FMUL", "FFMA")
SPECIAL = ("MUFU", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "div")
LAST = ("ret", "exit", "EXIT", "RET.REL.NODEC")  # nothing comes after
READS = ("LDG", "LDL", "LD.", "ld.global", "ld.local", "ATOM")  # that something waits for
MEMORY = ("LD", "ST", "ld", "st", "ATOM", "RED")


class Instruction(NamedTuple):
    """name: as it is written; after: the places of the instructions that may come next."""

    name: str
    after: tuple[int, ...]


def find_tool(name: str) -> str | None:
    """A program of the CUDA toolkit: on the path, or in one of NVIDIA's packages for Python."""
    for folder in map(Path, sys.path):
        for found in sorted(folder.glob(f"nvidia/*/bin/{name}")):
            return str(found)
    return shutil.which(name)


def of_ptx(text: str) -> list[Instruction]:
    """The instructions of the kernel in a PTX file."""
    body = text[text.index("{", text.index(".entry")) :]
    lines = [line.partition("//")[0].strip() for line in body.splitlines()]
    pieces = []
    for line in lines:
        if re.fullmatch(r"\$\w+:", line):
            pieces.append(line)
        elif not line.startswith((".", "{", "}")):
            pieces.extend(part.strip() for part in line.split(";") if part.strip())
    return _linked(pieces, r"bra(?:\.uni)?\s+(\$\w+)")


def of_sass(text: str) -> list[Instruction]:
    """The instructions in what nvdisasm prints."""
    pieces = []
    for line in text.splitlines():
        label = re.match(r"(\.L_x_\d+):", line)
        instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line)
        if label:
            pieces.append(f"{label[1]}:")
        elif instruction:
            pieces.append(instruction[1].strip())
    # For an A100 the way out of a loop may be a call to what comes after it.
    return _linked(pieces, r"(?:BRA|CALL\.REL).*?`\((\.L_x_\d+)\)")


def _linked(pieces: list[str], branch: str) -> list[Instruction]:
    """Lines and labels ("name:") as instructions that know where they go."""
    labels, written = {}, []
    for piece in pieces:
        if re.fullmatch(r"[.$]\w+:", piece):
            labels[piece[:-1]] = len(written)
        else:
            written.append(piece)
    found = []
    for place, line in enumerate(written):
        goes, words = re.search(branch, line), line.split()
        sometimes = words[0].startswith("@")
        # A condition may also come before the place: BRA.U UP1, `(.L_x_3)
        asks = goes and "," in line[: goes.start(1)]
        name = words[1] if sometimes and len(words) > 1 else words[0]
        after = [labels[goes[1]]] if goes else []
        ends = name in LAST or (goes and not (asks or name.startswith("CALL")))
        if (sometimes or not ends) and place + 1 < len(written):
            after.append(place + 1)
        found.append(Instruction(name, tuple(after)))
    return found


def loops(code: Sequence[Instruction]) -> list[frozenset[int]]:
    """The places in each loop: all that lead back to where it begins."""
    before: dict[int, list[int]] = {}
    for place, one in enumerate(code):
        for after in one.after:
            before.setdefault(after, []).append(place)
    found: dict[int, set[int]] = {}
    for end, begin in _backwards(code):
        inside = found.setdefault(begin, {begin})
        waiting = [end]
        while waiting:
            place = waiting.pop()
            if place not in inside:
                inside.add(place)
                waiting.extend(before.get(place, ()))
    return [frozenset(inside) for inside in found.values()]


def _backwards(code: Sequence[Instruction]) -> list[tuple[int, int]]:
    """(from, to) of the steps back to a place on the way there."""
    found, seen, on_the_way = [], {0}, {0}
    stack = [(0, iter(code[0].after))]
    while stack:
        place, left = stack[-1]
        after = next(left, None)
        if after is None:
            on_the_way.discard(place)
            stack.pop()
        elif after in on_the_way:
            found.append((place, after))
        elif after not in seen:
            seen.add(after)
            on_the_way.add(after)
            stack.append((after, iter(code[after].after)))
    return found


def round_loop(code: Sequence[Instruction]) -> tuple[frozenset[int], frozenset[int]]:
    """The places in the loop over rounds, which is the largest inside the largest, that over stops;
    and those of them that are in loops again.
    """
    every = sorted(loops(code), key=len)
    inside = [loop for loop in every if loop < every[-1]]
    rounds = inside[-1]
    return rounds, frozenset().union(*(loop for loop in inside if loop < rounds))


def kind(name: str) -> str:
    """float, special, memory or other: which pipe an instruction keeps busy."""
    if name.startswith(SPECIAL):
        return "special"
    if name.startswith(MEMORY):
        return "memory"
    if name.startswith(FLOAT_OF_SASS) or re.match(r"(add|sub|mul|fma)\.\w*\.?f32", name):
        return "float"
    return "other"


def kinds(code: Sequence[Instruction], places: frozenset[int]) -> Counter[str]:
    return Counter(kind(code[place].name) for place in places)


def reads(code: Sequence[Instruction], places: frozenset[int]) -> Counter[str]:
    """How many read the device's memory, under the name "read"."""
    return Counter("read" for place in places if code[place].name.startswith(READS))


def warps_of(registers: int) -> int:
    """Warps, each a block, that a scheduler holds at the same time. registers: of a thread."""
    return min(BLOCKS, REGISTERS // (32 * (-(-registers // 8) * 8)))


def waiting_cycles(instructions: float, reads: float) -> float:
    """Of a warp, if each of its instructions and reads waited for the one before."""
    return WAIT * instructions + WAIT_FOR_MEMORY * reads


def cycles(counts: dict[str, float], float_lanes: int) -> float:
    """Of one scheduler, for a warp. float_lanes: of a multiprocessor."""
    each = CYCLES | {"float": max(1, 128 // float_lanes)}
    return sum(each[name] * count for name, count in counts.items())


class Assembled(NamedTuple):
    """registers: of a thread; spills: bytes that a thread writes to and reads from memory because
    its registers are full; sass: what nvdisasm prints, if it is there.
    """

    registers: int
    spills: int
    sass: str | None


def assembled(ptx: Path) -> Assembled:
    """What ptxas makes of a file."""
    ptxas, nvdisasm = find_tool("ptxas"), find_tool("nvdisasm")
    if ptxas is None:
        raise SystemExit('ptxas is missing: pip install "jax[cuda12]"')
    target = re.search(r"\.target\s+(\w+)", ptx.read_text())
    assert target is not None
    cubin = ptx.with_suffix(".cubin")
    command = [ptxas, "-v", f"-arch={target[1]}", str(ptx), "-o", str(cubin)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    text = said.stdout + said.stderr
    registers = re.search(r"Used (\d+) registers", text)
    spilled = re.findall(r"(\d+) bytes spill", text)
    assert registers is not None
    sass = None
    if nvdisasm is not None:
        shown = subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, text=True)
        sass = shown.stdout if shown.returncode == 0 else None
    return Assembled(int(registers[1]), sum(map(int, spilled)), sass)
