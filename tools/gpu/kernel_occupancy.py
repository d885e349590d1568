"""How many threads of a kernel a multiprocessor holds at once, by the limits of NVIDIA's architectures."""

import collections

MOST_THREADS = 1024  # in a block

# The limits of a multiprocessor (CUDA C++ Programming Guide, technical specifications by compute capability); `reserved`: shared memory that the
# driver takes of each block, which cuobjdump counts for 9.0 and newer where a kernel has any of its own.
Card = collections.namedtuple("Card", "threads blocks shared_bytes reserved")
CARDS = {
    "sm_75": Card(1024, 16, 64 << 10, 0),
    "sm_80": Card(2048, 32, 164 << 10, 1 << 10),
    "sm_86": Card(1536, 16, 100 << 10, 1 << 10),
    "sm_87": Card(1536, 16, 164 << 10, 1 << 10),
    "sm_89": Card(1536, 24, 100 << 10, 1 << 10),
    "sm_90": Card(2048, 32, 228 << 10, 1 << 10),
    "sm_100": Card(2048, 32, 228 << 10, 1 << 10),
    "sm_103": Card(2048, 32, 228 << 10, 1 << 10),
    "sm_120": Card(1536, 24, 100 << 10, 1 << 10),
    "sm_121": Card(1536, 24, 100 << 10, 1 << 10),
}
REGISTERS, PARTITIONS, WARP = 65536, 4, 32  # in a multiprocessor; each partition has its own registers


def resident_threads(architecture, registers, shared, threads):
    """0 where not one block fits. `shared`: bytes of a block, as cuobjdump counts."""
    card = CARDS[architecture]
    of_block = max(shared, card.reserved) if int(architecture[3:]) >= 90 else shared + card.reserved
    warps = -(-threads // WARP)
    of_warp = -(-registers * WARP // 256) * 256  # registers are given out by 256
    by_registers = REGISTERS // PARTITIONS // max(of_warp, 256) * PARTITIONS // warps
    by_shared = card.shared_bytes // max(of_block, 1)
    by_threads = card.threads // (warps * WARP)
    return min(by_registers, by_shared, by_threads, card.blocks) * threads
