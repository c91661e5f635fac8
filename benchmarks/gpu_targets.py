"""GPUs to compile for, which need not be there: what XLA asks of a device, and its rates."""

from dataclasses import dataclass
from typing import Any

SCHEDULERS = 4  # of a multiprocessor, each of which issues one instruction of a warp per cycle
WARP = 32


@dataclass(frozen=True)
class Target:
    """clock: GHz, the highest; bandwidth: bytes per second; lanes: of float32 sums and products per
    multiprocessor and cycle. From NVIDIA's data sheets and the CUDA C++ programming guide.
    """

    name: str
    major: int
    minor: int
    multiprocessors: int
    clock: float
    bandwidth: float
    memory: int
    cache: int
    lanes: int


TARGETS = {
    "a100": Target("NVIDIA A100", 8, 0, 108, 1.41, 2.04e12, 80 << 30, 40 << 20, 64),
    "h100": Target("NVIDIA H100", 9, 0, 132, 1.98, 3.35e12, 80 << 30, 50 << 20, 128),
    "b200": Target("NVIDIA B200", 10, 0, 148, 1.965, 8.0e12, 180 << 30, 126 << 20, 128),
}


def description(target: Target) -> str:
    """The device as XLA wants it described: text of a protocol buffer."""
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: {WARP}
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: {target.multiprocessors}
  fpus_per_core: {target.lanes}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {int(target.bandwidth)}
  l2_cache_size: {target.cache}
  clock_rate_ghz: {target.clock}
  device_memory_size: {target.memory}
  shared_memory_per_block_optin: 232448
  cuda_compute_capability {{ major: {target.major} minor: {target.minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 7 }}
runtime_version {{ major: 12 minor: 8 patch: 0 }}
device_description_str: "{target.name}"
"""


def sharding_on(target: Target) -> Any:
    """The sharding of arrays on a device that is not there. Takes internals of JAX: no public
    function makes a topology of GPUs from a description.
    """
    import jax

    try:
        from jax._src import xla_bridge

        xla_bridge._discover_and_register_pjrt_plugins()
        make: Any = xla_bridge._topology_factories["cuda"]
        topology = make("", target_config=description(target), topology="1x1x1")
        devices = topology._make_compile_only_devices()
    except (ImportError, AttributeError, KeyError, TypeError) as error:
        raise SystemExit(
            f"JAX {jax.__version__} has no CUDA compiler here, or keeps it elsewhere "
            f'({type(error).__name__}: {error}): pip install "jax[cuda12]==0.10.2"'
        ) from error
    mesh = jax.sharding.Mesh(devices, ("gpus",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
