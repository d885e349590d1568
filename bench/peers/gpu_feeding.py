"""Feeds bench/peers/gpu_torch.py from a DataLoader: batches are page-locked, and copied to the GPU while the step before computes."""


class WholeBatches:
    """A data set whose items are whole batches, which the loader only moves."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        return self.batches[i % len(self.batches)]


def loaded(batches, workers, pinned):
    """Batches without end, from a DataLoader."""
    import torch

    more = {"persistent_workers": True, "prefetch_factor": 2} if workers else {}
    return iter(torch.utils.data.DataLoader(WholeBatches(batches), batch_size=None, num_workers=workers, pin_memory=pinned, **more))


def fed_by_loader(step, batches, workers, device):
    """The step over batches of the loader; the next batch is copied while the step computes, if the device has streams."""
    import torch

    cuda = device.type == "cuda"
    source = loaded(batches, workers, cuda)
    aside = torch.cuda.Stream() if cuda else None

    def ahead():
        if not cuda:
            return next(source)
        with torch.cuda.stream(aside):
            return tuple(x.to(device, non_blocking=True) for x in next(source))

    following = [ahead()]

    def run(_):
        batch = following[0]
        if cuda:
            torch.cuda.current_stream().wait_stream(aside)
            for x in batch:
                x.record_stream(torch.cuda.current_stream())
        loss = step(*batch)
        following[0] = ahead()
        return loss

    return run
