"""Modules of PyTorch: five steps are PyTorch's own, and weights come back."""

import copy

import dense
import numpy
import pytest

import tandem_train as tt

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("onnx", reason="PyTorch's exporter needs the package onnx")
nn = torch.nn


class Block(nn.Module):
    """The residual block of a ResNet, with a head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 6, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(6)
        self.conv1 = nn.Conv2d(6, 6, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(6, momentum=0.3)
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        x = torch.relu(self.bn1(self.stem(x)))
        x = torch.relu(x + self.bn2(self.conv1(x)))
        return self.fc(x.mean((2, 3)))


CROSS_ENTROPY = {
    "loss.terms": [{"kind": "softmax_cross_entropy", "logits": "logits", "labels": "labels"}],
    "optimizer": {"kind": "adamw", "lr": 0.01, "weight_decay": 0.1},
}
BLOCK = {"inputs": ["image"], "outputs": ["logits"], "batch_size": 8}


def images(step, size=8):
    random = torch.Generator().manual_seed(step)
    return torch.randn(size, 1, 8, 8, generator=random), torch.randint(0, 3, (size,), generator=random)


def block():
    torch.manual_seed(3)
    return Block()


def test_five_steps_of_a_dense_network_are_those_of_torch():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    settings = {**dense.LOSS, "optimizer": {"kind": "sgd", "lr": 0.1, "momentum": 0.9}}
    session = tt.from_torch(net, torch.zeros(2, 4), inputs=["x"], outputs=["y"], batch_size=8, settings=settings)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(5):
        feeds = {name: torch.from_numpy(value) for name, value in dense.batch(step).items()}
        loss = nn.functional.mse_loss(net(feeds["x"]), feeds["t"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert session.step(feeds) == pytest.approx(loss.item(), abs=1e-5)
    for name, value in net.named_parameters():
        numpy.testing.assert_allclose(session.parameters[name], value.detach(), atol=1e-5)


def test_a_residual_block_comes_back():
    net, own = block(), block()
    session = tt.from_torch(net, images(0)[0][:2], **BLOCK, settings=CROSS_ENTROPY)
    optimizer = torch.optim.AdamW(own.parameters(), lr=0.01, weight_decay=0.1)
    for step in range(5):
        x, labels = images(step)
        loss = nn.functional.cross_entropy(own(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert session.step(image=x, labels=labels) == pytest.approx(loss.item(), abs=1e-5)
    for name, value in session.parameters.items():
        numpy.testing.assert_allclose(value, own.state_dict()[name], atol=2e-5)
    session.copy_to(net)
    net.eval()
    x = images(9, 13)[0]
    with torch.no_grad():
        numpy.testing.assert_allclose(session.predict(image=x)["logits"], net(x), atol=1e-5)
    for name in ("bn1", "bn2"):  # ONNX stores the population variance: n - 1 of n, of 8 x 8 x 8 values
        mine, theirs = getattr(net, name), getattr(own, name)
        numpy.testing.assert_allclose(mine.running_mean, theirs.running_mean, atol=1e-5)
        numpy.testing.assert_allclose(mine.running_var, theirs.running_var, rtol=3e-3)
        assert not numpy.allclose(mine.running_mean, block().state_dict()[f"{name}.running_mean"])


def test_the_module_stays_as_it_is():
    net = block()
    net.bn1.eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    random = torch.random.get_rng_state()
    session = tt.from_torch(net, (images(0)[0],), **BLOCK, settings=CROSS_ENTROPY)
    session.step(image=images(0)[0], labels=images(0)[1])
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert torch.equal(random, torch.random.get_rng_state())
    assert net.training and net.bn2.training and not net.bn1.training


def test_statistics_that_stay_are_those_of_the_module():
    net = block()
    for step in range(3):
        net(images(step)[0])
    settings = {**CROSS_ENTROPY, "model.batch_norm": "inference"}
    session = tt.from_torch(net, images(0)[0], **BLOCK, settings=settings)
    x = images(4)[0]
    with torch.no_grad():
        numpy.testing.assert_allclose(session.predict(image=x)["logits"], net.eval()(x), atol=1e-5)


def test_parts_in_evaluation_stay_so():
    """As in fine-tuning: statistics of one layer and a dropout stay as in eval()."""

    def made():
        net = nn.Sequential(block(), nn.Dropout(0.5))
        for step in range(3):
            net(images(step)[0])
        net[0].bn1.eval()
        net[0].bn1.requires_grad_(False)
        net[1].eval()
        return net

    net, own = made(), made()
    session = tt.from_torch(net, images(0)[0], **BLOCK, settings=CROSS_ENTROPY)
    optimizer = torch.optim.AdamW([p for p in own.parameters() if p.requires_grad], lr=0.01, weight_decay=0.1)
    for step in range(5):
        x, labels = images(step)
        loss = nn.functional.cross_entropy(own(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert session.step(image=x, labels=labels) == pytest.approx(loss.item(), abs=1e-5)
    session.copy_to(net)
    for name, value in own.state_dict().items():
        if "num_batches" not in name and "bn2.running" not in name:
            numpy.testing.assert_allclose(net.state_dict()[name], value, atol=2e-5, err_msg=name)
    assert torch.equal(net[0].bn1.running_mean, made()[0].bn1.running_mean)


def test_states_go_to_other_modules_and_back():
    net, other = block(), Block()
    session = tt.from_torch(net, images(0)[0], **BLOCK, settings=CROSS_ENTROPY)
    session.step(image=images(0)[0], labels=images(0)[1])
    state = session.state_dict()
    statistics = {f"bn{i}.running_{what}" for i in (1, 2) for what in ("mean", "var")}
    assert set(state) == {name for name in net.state_dict() if "num_batches" not in name} and statistics < set(state)
    session.copy_to(other)
    fresh = {name: value for name, value in block().state_dict().items() if value.is_floating_point()}
    session.load_state_dict(fresh)
    x = images(4)[0]
    with torch.no_grad():
        numpy.testing.assert_allclose(session.predict(image=x)["logits"], block().eval()(x), atol=1e-5)
    session.load_state_dict(other.state_dict(), strict=False)
    with torch.no_grad():
        numpy.testing.assert_allclose(session.predict(image=x)["logits"], other.eval()(x), atol=1e-5)


def test_copy_to_is_strict():
    session = tt.from_torch(block(), images(0)[0], **BLOCK, settings=CROSS_ENTROPY)
    with pytest.raises(tt.Error, match="device meta"):
        session.copy_to(block().to("meta"))
    other = block()
    other.fc, other.more = nn.Linear(6, 4), nn.Linear(2, 2)
    del other.bn2
    before = {name: value.clone() for name, value in other.state_dict().items()}
    with pytest.raises(tt.Error) as error:
        session.copy_to(other)
    reported = {d.path: d.message for d in error.value.diagnostics}
    assert "another shape" in reported["fc.weight"] and "session has nothing" in reported["more.bias"]
    assert "module has nothing" in reported["bn2.running_var"]
    assert all(torch.equal(before[name], value) for name, value in other.state_dict().items())
    with pytest.raises(tt.Error, match="no module"):
        session.copy_to({})


def test_frozen_parameters_and_buffers_do_not_train():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.full((4,), 2.0))
            self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 3)
            self.first.requires_grad_(False)

        def forward(self, x):
            return self.last(torch.relu(self.first(x * self.scale)))

    net = Scaled()
    session = tt.from_torch(net, torch.zeros(2, 4), inputs=["x"], outputs=["y"], batch_size=8, settings=dense.SETTINGS)
    for step in range(3):
        session.step(dense.batch(step))
    own = {name: value.clone() for name, value in net.state_dict().items()}
    session.copy_to(net)
    moved = {name for name, value in net.state_dict().items() if not torch.equal(value, own[name])}
    assert moved == {"last.weight", "last.bias"}


def test_tied_weights_come_back():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.out.weight = self.into.weight

        def forward(self, x):
            return self.out(torch.tanh(self.into(x)))

    net = Tied()
    settings = {"loss.terms": [{"kind": "mse", "predictions": "y", "targets": "t"}], "optimizer": {"kind": "sgd", "lr": 0.1}}
    session = tt.from_torch(net, torch.zeros(2, 4), inputs=["x"], outputs=["y"], batch_size=8, settings=settings)
    before, x = net.into.weight.clone(), torch.randn(8, 4)
    session.step(x=x, t=torch.ones(8, 4))
    session.copy_to(net)
    assert not torch.equal(before, net.into.weight) and net.out.weight is net.into.weight
    with torch.no_grad():
        numpy.testing.assert_allclose(session.predict(x=x)["y"], net(x), atol=1e-5)


def test_tensors_that_cannot_be_read_are_refused(session):
    feeds = {name: torch.from_numpy(value) for name, value in dense.batch(0).items()}
    wrong = {
        "meta": feeds["x"].to("meta"),
        "float64": feeds["x"].double(),
        "bfloat16": feeds["x"].bfloat16(),
        "sparse": feeds["x"].to_sparse(),
        "nothing in memory": torch._subclasses.FakeTensorMode().from_tensor(feeds["x"]),
    }
    for name, tensor in wrong.items():
        with pytest.raises(tt.Error) as error:
            session.step(x=tensor, t=feeds["t"])
        reported = error.value.diagnostics[0]
        assert reported.path == "x" and reported.got, name
    expected = session.predict(x=feeds["x"])["y"]
    for same in (feeds["x"].t().contiguous().t(), feeds["x"].clone().requires_grad_(), torch.nn.Parameter(feeds["x"])):
        numpy.testing.assert_array_equal(session.predict(x=same)["y"], expected)


def test_mistakes_are_named():
    x = torch.zeros(2, 4)
    with pytest.raises(tt.Error, match="no module"):
        tt.from_torch(dense, x, inputs=["x"], outputs=["y"], batch_size=8)
    with pytest.raises(tt.Error, match="needs a name"):
        tt.from_torch(nn.Linear(4, 3), (x, x), inputs=["x"], outputs=["y"], batch_size=8)
    for inputs, outputs in ((["x", "x"], ["y"]), (["x", "y"], ["y"]), (["x", ""], ["y"])):
        with pytest.raises(tt.Error, match="a name of its own"):
            tt.from_torch(nn.Bilinear(4, 4, 3), (x, x), inputs=inputs, outputs=outputs, batch_size=8)
    with pytest.raises(tt.Error, match=r"each output of the module needs a name.*2.*1"):
        tt.from_torch(nn.RNN(4, 3, batch_first=True), x[:, None], inputs=["x"], outputs=["y"], batch_size=8)
    with pytest.raises(tt.Error, match="list of str"):
        tt.from_torch(nn.Linear(4, 3), x, inputs="x", outputs=["y"], batch_size=8)
    with pytest.raises(tt.Error, match="cannot export"):
        tt.from_torch(nn.Linear(4, 3), torch.zeros(2, 5), inputs=["x"], outputs=["y"], batch_size=8)


def test_the_package_does_not_import_torch():
    from programs import finished

    finished("assert 'torch' not in sys.modules and 'onnx' not in sys.modules")


class Unused(nn.Module):
    """Has a layer that no output depends on."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.pooler = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


def test_a_layer_that_is_not_used_stays_as_it_is():
    net = Unused()
    pooler = net.pooler.weight.detach().clone()
    session = tt.from_torch(net, torch.zeros(2, 4), inputs=["x"], outputs=["logits"], batch_size=4, settings=CROSS_ENTROPY)
    session.step(x=torch.randn(4, 4), labels=torch.tensor([0, 1, 2, 0]))
    session.copy_to(net)
    assert torch.equal(net.pooler.weight, pooler)
    assert numpy.array_equal(net.fc.weight.detach().numpy(), session.parameters["fc.weight"])


def test_a_branch_that_depends_on_values_is_a_warning():
    class Branch(Unused):
        def forward(self, x):
            return self.fc(x) if x.sum() > 0 else self.fc(-x)

    with pytest.warns(torch.jit.TracerWarning, match="Python boolean"):
        tt.from_torch(Branch(), torch.ones(2, 4), inputs=["x"], outputs=["logits"], batch_size=4, settings=CROSS_ENTROPY)


def test_the_row_of_padding_stays():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(6, 4, padding_idx=2)
            self.fc = nn.Linear(4, 3)

        def forward(self, ids):
            return self.fc(self.table(ids).mean(1))

    torch.manual_seed(0)
    net, ids = Bag(), torch.tensor([[0, 2, 1], [2, 2, 5], [3, 4, 2], [1, 1, 1]])
    with torch.no_grad():
        net.table.weight[2] = 0.5
    own = copy.deepcopy(net)
    options = {"loss": tt.loss.softmax_cross_entropy("logits", "labels"), "optimizer": tt.optim.Adam(lr=0.01)}
    session = tt.from_torch(net, ids[:2], inputs=["ids"], outputs=["logits"], batch_size=4, **options)
    optimizer, labels = torch.optim.Adam(own.parameters(), lr=0.01), torch.tensor([0, 1, 2, 0])
    for _ in range(3):
        loss = nn.functional.cross_entropy(own(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert session.step(ids=ids, labels=labels) == pytest.approx(loss.item(), abs=1e-5)
    numpy.testing.assert_allclose(session.parameters["table.weight"], own.table.weight.detach(), atol=1e-5)
    assert (session.parameters["table.weight"][2] == 0.5).all()
