"""Loops and costs of GPU code, as `benchmarks.gpu_program` reads them off."""

from __future__ import annotations

import pytest

from benchmarks import gpu_code

# Stops (.L_x_5) around rounds (.L_x_4); the ways out are written as given.
SASS = """
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_5:
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
.L_x_4:
        /*0020*/                   LDG.E R3, [R4.64] ;
        /*0030*/                   FFMA R5, R3, R3, R5 ;
        /*0040*/                   MUFU.RCP R6, R5 ;
        /*0050*/              {rounds}
        /*0060*/                   BRA `(.L_x_4) ;
.L_x_3:
        /*0070*/              {stops}
        /*0080*/                   BRA `(.L_x_5) ;
.L_x_2:
        /*0090*/                   EXIT ;
"""
WAYS = {
    "branch": "@!P1 BRA `({}) ;",
    "call": "@!P1 CALL.REL.NOINC `({}) ;",  # A100
    "uniform": "BRA.U UP1, `({}) ;",  # B200
}


@pytest.mark.parametrize("way", WAYS)
def test_the_loop_over_rounds_is_found(way: str) -> None:
    out = WAYS[way]
    code = gpu_code.of_sass(SASS.format(rounds=out.format(".L_x_3"), stops=out.format(".L_x_2")))
    rounds, inner = gpu_code.round_loop(code)
    assert [code[place].name for place in sorted(rounds)] == [
        "LDG.E", "FFMA", "MUFU.RCP", out.removeprefix("@!P1 ").split()[0], "BRA",
    ]  # fmt: skip
    assert not inner
    assert gpu_code.kinds(code, rounds) == {"memory": 1, "float": 1, "special": 1, "other": 2}
    assert gpu_code.reads(code, rounds) == {"read": 1}


def test_warps_that_registers_leave_room_for() -> None:
    assert [gpu_code.warps_of(n) for n in (32, 64, 72, 102, 128, 202, 255)] == [8, 8, 7, 4, 4, 2, 2]
