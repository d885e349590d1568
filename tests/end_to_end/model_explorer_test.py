"""`tandem policy plan --model-explorer`: the file is a graph of the model's modules, and says what the other commands say.

    python3 tests/end_to_end/model_explorer_test.py build/tandem
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from policy_page import MODEL, write_project


class Explorer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.folder = pathlib.Path(place.name)
        write_project(cls.folder)
        cls.run_tandem("policy", "plan", "policy.toml", *MODEL, "--model-explorer", "placed.json")
        cls.collection = json.loads((cls.folder / "placed.json").read_text())
        cls.graph, = cls.collection["graphs"]
        cls.nodes = {node["id"]: node for node in cls.graph["nodes"]}
        cls.names = json.loads(cls.run_tandem("policy", "names", *MODEL, "--json"))["names"]

    @classmethod
    def run_tandem(cls, *words):
        ended = subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, timeout=60)
        if ended.returncode != 0:
            raise AssertionError(ended.stderr)
        return ended.stdout

    def attribute(self, node, key):
        return next(pair["value"] for pair in self.nodes[node]["attrs"] if pair["key"] == key)

    def test_has_the_form_that_the_viewer_reads(self):
        self.assertEqual(self.collection["label"], "gpt, policy.toml")
        self.assertEqual(len(self.nodes), len(self.graph["nodes"]), "ids are unique")
        for node in self.graph["nodes"]:
            self.assertLessEqual(set(node), {"id", "label", "namespace", "attrs", "incomingEdges", "outputsMetadata", "style"})
            for text in (node["id"], node["label"], node["namespace"], *(pair[key] for pair in node["attrs"] for key in ("key", "value"))):
                self.assertIsInstance(text, str)
            self.assertEqual([output["id"] for output in node["outputsMetadata"]], [str(i) for i in range(len(node["outputsMetadata"]))])
            self.assertEqual([edge["targetNodeInputId"] for edge in node["incomingEdges"]], [str(i) for i in range(len(node["incomingEdges"]))])
            for edge in node["incomingEdges"]:
                source = self.nodes[edge["sourceNodeId"]]
                self.assertIn(edge["sourceNodeOutputId"], [output["id"] for output in source["outputsMetadata"]])
        for attributes in self.graph["groupNodeAttributes"].values():
            self.assertTrue(all(isinstance(value, str) for value in attributes.values()))

    def test_every_name_is_a_node_in_the_namespace_of_its_module(self):
        namespaces = {""}
        modules = {name["path"].rpartition(".")[0] for name in self.names if name["kind"] == "operator"}
        for name in self.names:
            node, path = self.nodes[name["path"]], name["path"]
            is_stored = name["kind"] in ("parameter", "buffer")
            if is_stored and ":" not in path:  # a tensor without a module stands with the module that reads it
                module = node["namespace"].replace("/", ".")
                self.assertIn(module, modules, path)
            else:
                module = path.split(":")[0] if is_stored else path.rpartition(".")[0]
                self.assertEqual(node["namespace"], module.replace(".", "/"), path)
            namespaces |= {"/".join(module.split(".")[:depth]) for depth in range(1, module.count(".") + 2)} - {""}
            if is_stored:
                self.assertIn({"key": "tensor_shape", "value": f"{name['dtype']}{name['shape']}"}, node["outputsMetadata"][0]["attrs"])
        self.assertEqual(set(self.graph["groupNodeAttributes"]), namespaces)
        others = [node for node in self.graph["nodes"] if node["id"] not in {name["path"] for name in self.names}]
        self.assertEqual({node["namespace"] for node in others}, {""})
        self.assertEqual({pair["value"] for node in others for pair in node["attrs"]}, {"input of the model", "output of the model"})

    def test_each_operator_is_between_the_inputs_and_the_outputs(self):
        """A path of edges leads from an input or a parameter to each operator, and from each to an output."""
        before = {node["id"]: {edge["sourceNodeId"] for edge in node["incomingEdges"]} for node in self.graph["nodes"]}
        reached = {id for id in before if id.startswith("output ")}
        self.assertTrue(reached)
        todo = list(reached)
        while todo:
            new = before[todo.pop()] - reached
            reached |= new
            todo += new
        operators = {name["path"] for name in self.names if name["kind"] == "operator" and not name["path"].startswith("loss")}
        self.assertEqual(operators - reached, set())
        self.assertEqual({id for id in operators if not before[id]}, set())

    def test_devices_and_reasons_are_those_of_explain(self):
        for name in self.names:
            explained = json.loads(self.run_tandem("policy", "explain", "policy.toml", name["path"], *MODEL, "--json"))
            attributes = explained["attributes"]
            keys = {"param": ("device", "device decided by"), "state": ("device of optimizer state", "optimizer state decided by")} \
                if name["kind"] in ("parameter", "buffer") else {"run": ("device", "device decided by"), "acts": ("activations", "activations decided by")}
            for attribute, (value, reason) in keys.items():
                if attribute in attributes:
                    self.assertEqual(self.attribute(name["path"], value), attributes[attribute]["value"], name)
                    self.assertEqual(self.attribute(name["path"], reason), attributes[attribute]["reason"], name)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
