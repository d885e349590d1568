"""tools/gpu/kernel_resources.py: what it reads out of recorded output of cuobjdump 13, and each bound that a kernel can break."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))
import kernel_resources  # noqa: E402
from kernel_occupancy import resident_threads  # noqa: E402

PLAIN = "_ZN6tandem4cuda9gpu_entryINS0_12_GLOBAL__N_111ForwardBodyIfEEEEvT_"
BOUNDED = "_ZN6tandem4cuda13bounded_entryINS0_10reductions8RowsBodyIfLi8EEEEEvT_"

HEAD = """
Fatbin {kind} code:
================
arch = {architecture}
code version = [1,8]
host = linux
compile_size = 64bit
identifier = /somewhere/kernels/cuda/{file}
"""
RESOURCES = """
Resource usage:
 Common:
  GLOBAL:0
 Function {plain}:
  REG:{plain_registers} STACK:{stack} SHARED:1024 LOCAL:0 CONSTANT[0]:936 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function {bounded}:
  REG:{bounded_registers} STACK:0 SHARED:{shared} LOCAL:0 CONSTANT[0]:608 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
ELF = """
Sections:
Index Offset   Size ES Align        Type        Flags Link     Info Name
    d  47918     54  0  4                    CUDA_INFO       40    3       17 .nv.info.{bounded}

.nv.info
	Attribute:	EIATTR_REGCOUNT
	Format:	EIFMT_SVAL
	Value:	function: 0x3	register count: 32

.nv.info.{plain}
	Attribute:	EIATTR_KPARAM_INFO
	Format:	EIFMT_SVAL
	Value:	Index : 0x0	Ordinal : 0x0	Offset  : 0x0	Size    : 0x60

.nv.info.{bounded}
	Attribute:	EIATTR_KPARAM_INFO
	Format:	EIFMT_SVAL
	Value:	Index : 0x0	Ordinal : 0x0	Offset  : 0x0	Size    : 0x60
	Attribute:	EIATTR_MAX_THREADS
	Format:	EIFMT_SVAL
	Value:	0x200 0x1 0x1
	<0x12>

.text.{bounded}
	Value:	0x400 0x1 0x1
"""
LIST = "# bounds\nstack | 0\nthreads | 512\n"


def recorded(architectures=("sm_90",), plain_registers=40, bounded_registers=64, stack=0, shared=1152, elf=ELF):
    """What cuobjdump prints: (resources, ELF)."""
    values = dict(plain=PLAIN, bounded=BOUNDED, plain_registers=plain_registers)
    values |= dict(bounded_registers=bounded_registers, stack=stack, shared=shared)
    texts = ["", ""]
    for architecture in architectures:
        head = dict(architecture=architecture, file="folder/body.cu")
        texts[0] += HEAD.format(kind="ptx", **head) + HEAD.format(kind="elf", **head) + RESOURCES.format(**values)
        texts[1] += HEAD.format(kind="elf", **head) + elf.format(**values)
    return texts


class KernelResources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tool(self, texts):
        """A cuobjdump that prints what was recorded."""
        for name, text in zip(("resources", "elf"), texts):
            (self.folder / name).write_text(text)
        path = self.folder / "cuobjdump"
        path.write_text(f'#!/bin/sh\ncase $1 in --dump-resource-usage) cat "{self.folder}/resources";; -elf) cat "{self.folder}/elf";; esac\n')
        path.chmod(0o755)
        return path

    def check(self, bounds=LIST, more=(), **changed):
        """Exit code and printed lines."""
        (self.folder / "list.txt").write_text(bounds)
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = kernel_resources.main(
                ["program", "--check", str(self.folder / "list.txt"), "--cuobjdump", str(self.tool(recorded(**changed))), *more]
            )
        return code, out.getvalue() + errors.getvalue()

    def test_reads_every_number(self):
        code, said = self.check(more=["--json", str(self.folder / "out.json")], architectures=("sm_80", "sm_90"))
        self.assertEqual((code, said), (0, "4 kernels, 0 problems, 0 exceptions\n"))
        kernels = json.loads((self.folder / "out.json").read_text())
        self.assertEqual([k["architecture"] for k in kernels], ["sm_80", "sm_80", "sm_90", "sm_90"])
        plain, bounded = kernels[2:]
        self.assertEqual(plain["name"], "folder/body.cu: ForwardBody<float>")
        self.assertEqual((plain["registers"], plain["shared"], plain["bound"], plain["launch"]), (40, 1024, 0, 1024))
        self.assertEqual(bounded["name"], "folder/body.cu: RowsBody<float, 8>")
        self.assertEqual((bounded["registers"], bounded["shared"], bounded["bound"]), (64, 1152, 512))
        self.assertEqual(bounded["resident"], 1024)

    def test_local_memory_fails(self):
        code, said = self.check(stack=16)
        self.assertEqual(code, 1)
        self.assertIn("sm_90 folder/body.cu: ForwardBody<float>: 16 bytes of local memory a thread: expected at most 0", said)
        self.assertEqual(self.check(LIST + "folder/*: Forward* | stack | 16 | an array by a running index\n", stack=16)[0], 0)
        self.assertEqual(self.check(LIST + "folder/*: Forward* | stack | 15 | an array by a running index\n", stack=16)[0], 1)

    def test_registers_of_a_bounded_kernel_fail(self):
        self.assertEqual(self.check(bounded_registers=128)[0], 0)  # one block of 512 threads
        code, said = self.check("stack | 0\nthreads | 513\n", bounded_registers=128)
        self.assertEqual(code, 1)
        self.assertIn("RowsBody<float, 8>: 128 registers and 1152 bytes of shared memory let a multiprocessor hold 512 threads", said)
        code, said = self.check("stack | 0\nthreads | 513\n*: RowsBody* | threads | 512 | measured\n", bounded_registers=128)
        self.assertEqual((code, said), (0, "2 kernels, 0 problems, 1 exceptions\n"))

    def test_shared_memory_fails(self):
        self.assertEqual(self.check(shared=40 << 10)[0], 0)
        code, said = self.check("stack | 0\nthreads | 1024\n", shared=120 << 10)
        self.assertEqual(code, 1)
        self.assertIn("let a multiprocessor hold 512 threads", said)

    def test_a_kernel_whose_launch_is_unknown_must_take_any(self):
        self.assertEqual(self.check(plain_registers=64)[0], 0)
        code, said = self.check(plain_registers=72)
        self.assertEqual(code, 1)
        self.assertIn("72 registers a thread do not go with 1024 threads a block: give the body `block_threads`", said)
        listed = LIST + "folder/body.cu: ForwardBody<float> | launch | 256 | body.h\n"
        self.assertEqual(self.check(listed, plain_registers=72)[0], 0)
        self.assertEqual(self.check(listed, plain_registers=160)[0], 1)

    def test_the_list_is_held_to_the_program(self):
        code, said = self.check(LIST + "folder/other.cu: * | stack | 8 | gone\n")
        self.assertEqual(code, 1)
        self.assertIn("list.txt:4: no kernel is called folder/other.cu: *", said)
        for line in ("folder/*: * | registers | 3 | why\n", "folder/*: * | stack | many | why\n", "folder/*: * | stack | 3 |\n", "x\n"):
            code, said = self.check(LIST + line)
            self.assertEqual(code, 2, line)
            self.assertIn("list.txt:4: expected", said)
        self.assertIn("there is no line `stack | NUMBER`", self.check("threads | 1\n")[1])

    def test_nothing_read_is_a_failure(self):
        code, said = self.check(architectures=())
        self.assertEqual(code, 1)
        self.assertIn("the program has no kernels", said)
        code, said = self.check(architectures=("sm_200",))
        self.assertEqual(code, 1)
        self.assertIn("sm_200 is not among the architectures", said)

    def test_a_failing_tool_is_told(self):
        tool = self.folder / "failing"
        tool.write_text("#!/bin/sh\necho 'no such file' >&2\nexit 255\n")
        tool.chmod(0o755)
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(kernel_resources.main(["program", "--cuobjdump", str(tool)]), 2)
        self.assertIn("no such file", errors.getvalue())

    def test_without_the_tool_it_is_skipped(self):
        errors = io.StringIO()
        with unittest.mock.patch.object(kernel_resources, "find_tool", lambda: None), contextlib.redirect_stderr(errors):
            self.assertEqual(kernel_resources.main(["program"]), 77)
        self.assertIn("pip install nvidia-cuda-cuobjdump", errors.getvalue())

    def test_the_tool_of_setup_is_found(self):
        tool = self.folder / "deps" / "cuobjdump-13.2.51" / "bin" / "cuobjdump"
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        cache = self.folder / "cache" / "tandem"
        cache.mkdir(parents=True)
        (cache / "deps").symlink_to(self.folder / "deps")
        with unittest.mock.patch.dict(os.environ, {"PATH": str(self.folder)}), unittest.mock.patch.object(
            kernel_resources.sys, "path", []
        ), unittest.mock.patch.object(kernel_resources.glob, "glob", lambda p, glob=kernel_resources.glob.glob: [] if "/cuda-" in p else glob(p)):
            for name in ("CUDA_HOME", "VIRTUAL_ENV", "TANDEM_DEPS", "XDG_CACHE_HOME"):
                os.environ.pop(name, None)
            if os.path.exists("/usr/local/cuda/bin/cuobjdump"):
                self.skipTest("the toolkit has its own, which comes first")
            os.environ["TANDEM_DEPS"] = str(self.folder / "deps")
            self.assertEqual(kernel_resources.find_tool(), str(tool))
            os.environ["TANDEM_DEPS"] = ""
            os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
            self.assertEqual(kernel_resources.find_tool(), str(cache / "deps" / "cuobjdump-13.2.51" / "bin" / "cuobjdump"))
            os.environ["TANDEM_DEPS"] = str(self.folder / "none")
            self.assertIsNone(kernel_resources.find_tool())

    def test_the_page_names_folders_and_exceptions(self):
        page = self.folder / "page.md"
        self.check(LIST + "folder/*: Forward* | stack | 16 | an array\n", more=["--markdown", str(page)], stack=16)
        self.assertIn("| folder | 2 | 64 | 16 B | 1152 B | 1024 |", page.read_text())
        self.assertIn("| `folder/*: Forward*` | stack | 16 | an array |", page.read_text())

    def test_the_committed_list_reads(self):
        limits, exemptions = kernel_resources.read_list(ROOT / "tests" / "cuda" / "kernel_resources.txt")
        self.assertEqual(set(limits), {"stack", "threads"})
        self.assertTrue(all(e.reason for e in exemptions))

    # NVIDIA's occupancy calculator: registers are given out by 256 to a warp, from four files of 16,384.
    def test_occupancy(self):
        for architecture, registers, shared, threads, resident in (
            ("sm_90", 32, 0, 256, 2048),
            ("sm_90", 33, 0, 256, 1536),
            ("sm_90", 64, 0, 1024, 1024),
            ("sm_90", 65, 0, 1024, 0),
            ("sm_90", 128, 0, 256, 512),
            ("sm_90", 151, 0, 256, 256),
            ("sm_90", 255, 0, 256, 256),
            ("sm_86", 32, 0, 512, 1536),
            ("sm_80", 16, 0, 32, 1024),  # 32 blocks at most
            ("sm_80", 16, 100 << 10, 256, 256),
        ):
            self.assertEqual(resident_threads(architecture, registers, shared, threads), resident, (architecture, registers, shared, threads))


if __name__ == "__main__":
    unittest.main()
