"""The processors of the fault matrix, and how libraries are made to compute as on each of them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

X86 = platform.machine().lower() in ("x86_64", "amd64")
# What /proc/cpuinfo has to list before the kernels of a processor can run.
NEEDED = {
    "Prescott": {"pni"},
    "Haswell": {"avx2", "fma", "bmi2"},
    "Zen": {"avx2", "fma", "bmi2"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
# numba's name of it, and what LLVM would use beyond what ``NEEDED`` asks for.
COMPILED = {
    "Prescott": ("generic", ""),
    "Haswell": ("haswell", ""),
    "Zen": ("znver1", "-sse4a,-clzero,-mwaitx,-adx,-sha,-rdseed,-xsavec,-xsaves,-clflushopt"),
    "SkylakeX": ("skylake-avx512", "-pku,-clwb"),
}
# Features that numpy may find, by the first letters of their names, and the processor lacks.
BEYOND = {
    "Prescott": ("",), "Haswell": ("AVX512", "X86_V4"), "Zen": ("AVX512", "X86_V4"),
    "SkylakeX": ("AVX512_CLX", "AVX512_CNL", "AVX512_ICL", "AVX512_SPR"),
}  # fmt: skip
VARIABLES = ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES",
             "NPY_DISABLE_CPU_FEATURES", "GLIBC_TUNABLES")  # fmt: skip
# What OpenBLAS calls its kernels for each; one is named after the processor whose kernels it has.
KERNELS = {
    "Prescott": {"Prescott", "Katmai"}, "Haswell": {"Haswell"}, "Zen": {"Zen", "Haswell"},
    "SkylakeX": {"SkylakeX"},
}  # fmt: skip


def tell_why_not(name: str) -> str | None:
    """Why the kernels of a processor cannot run on this one; None where they can."""
    if not X86:
        return f"kernels of {name} are for x86-64, and this is {platform.machine()}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"whether this processor can run kernels of {name} is not known: no /proc/cpuinfo"
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    missing = sorted(NEEDED[name] - flags)
    return f"kernels of {name} need {', '.join(missing)}" if missing else None


def list_variables(name: str, numpy_features: list[str]) -> Mapping[str, str]:
    """The environment in which libraries compute as on a processor.

    Args:
        name: One of ``NEEDED``.
        numpy_features: What numpy found of this processor.
    """
    cpu, features = COMPILED[name]
    disabled = " ".join(one for one in numpy_features if one.startswith(BEYOND[name]))
    chosen = {
        "OPENBLAS_CORETYPE": name, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features,
        "NPY_DISABLE_CPU_FEATURES": disabled,
    }  # fmt: skip
    if name == "Prescott":
        chosen["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA"
    return chosen
