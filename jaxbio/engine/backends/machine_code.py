"""LLVM's text as machine code: compiled once, kept on disk."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

_lock = threading.Lock()  # of programs that are loaded, one after the other
_kept: dict[str, Any] = {}


class Target(NamedTuple):
    """What is compiled for. None: what is found here."""

    cpu: str | None = None
    features: str | None = None
    triple: str | None = None

    def whole(self) -> tuple[str, str, str]:
        """(cpu, features, triple)"""
        return (
            llvm.get_host_cpu_name() if self.cpu is None else self.cpu,
            llvm.get_host_cpu_features().flatten() if self.features is None else self.features,
            llvm.get_process_triple() if self.triple is None else self.triple,
        )

    @property
    def fuses(self) -> bool:
        """Has it an instruction for a product and a sum that are rounded once?"""
        cpu, features, triple = self.whole()
        if features:
            return not triple.startswith("x86") or "+fma" in features.split(",")
        return cpu not in ("x86-64", "x86-64-v2")


HERE = Target()


def object_code(text: str, target: Target = HERE) -> bytes:
    """Optimised machine code of LLVM's text."""
    machine = _machine(target)
    # A context of its own: several threads compile at once.
    text = text if target.fuses else _fusing_once(text)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)


def _fusing_once(text: str) -> str:
    """The same where fused steps of a vector are long pieces of code: one piece, which is called.
    Else large programs would take minutes to compile.
    """
    found = re.search(r'declare (<.*?>) @"(llvm\.fma\..*?)"\(.*\)', text)
    if not found:
        return text
    vector, name = found.groups()
    args = ", ".join(f"{vector} %{arg}" for arg in "xyz")
    once = f"""{found[0]}
define internal {vector} @fused({args}) noinline {{
  %sum = call {vector} @"{name}"({args})
  ret {vector} %sum
}}"""
    return text.replace(f'call {vector} @"{name}"', f"call {vector} @fused").replace(found[0], once)


def loaded(text: str, target: Target = HERE) -> Any:
    """The machine code of LLVM's text, ready to be called on this machine."""
    parts = (text, llvmlite.__version__, *target.whole())
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if key not in _kept:
        code = _object(key, text, target)
        with _lock:
            if key not in _kept:
                _kept[key] = _engine(code, target)
    return _kept[key]


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "jaxbio" / "machine-code"


def _machine(target: Target) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    cpu, features, triple = target.whole()
    found = llvm.Target.from_triple(triple)
    return found.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def _object(key: str, text: str, target: Target) -> bytes:
    """From the folder of compiled code, or compiled and put there."""
    file = cache_folder() / f"{key}.o"
    try:
        return file.read_bytes()
    except OSError:
        pass
    code = object_code(text, target)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
        part.write_bytes(code)
        part.replace(file)
    except OSError:  # a folder that cannot be written costs time, not results
        pass
    return code


def _engine(code: bytes, target: Target) -> Any:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
