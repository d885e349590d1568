"""Writes tests/data/signal_gradients.json: transforms, pooling, sampling and moves of blocks with PyTorch's results and gradients in double.

    python tests/scripts/signal_gradients.py

As onnx_gradients.py, whose form of a case it shares; torchvision has the pooling of regions and the deformable convolution.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
import torchvision.ops as vision

from onnx_gradients import case, cases, integers, numbers


def setting(name, op, opset, attributes, inputs, function, settings):
    """A case whose inputs of these numbers are known before the run, and have no gradient."""
    case(name, op, opset, attributes, inputs, function)
    for i in settings:
        cases[-1]["inputs"][i].pop("gradient", None)


def moves():
    x = numbers(3, 5, 2)
    x[0, 1, 0] = x[1, 0, 0] = x[1, 4, 0] = x[2, 2, 1] = 0
    for exclusive in (0, 1):
        for reverse in (0, 1):
            def running(x, _, exclusive=exclusive, reverse=reverse):
                turned = x.flip(1) if reverse else x
                if exclusive:
                    turned = torch.cat([torch.ones_like(turned[:, :1]), turned[:, :-1]], 1)
                # cumprod's own gradient, element by element
                y = torch.stack([turned[:, : i + 1].prod(1) for i in range(turned.shape[1])], 1)
                return y.flip(1) if reverse else y
            case(f"running product {exclusive}{reverse}", "CumProd", 26, {"exclusive": exclusive, "reverse": reverse},
                 [x, integers(1)], running)
    lengths = integers([2, 5, 0])
    def reversed_steps(x, n):
        return torch.stack([torch.cat([row[:k].flip(0), row[k:]]) for row, k in zip(x, n.tolist())])
    case("steps back", "ReverseSequence", 10, {"batch_axis": 0, "time_axis": 1}, [x, lengths], reversed_steps)
    case("steps back, time first", "ReverseSequence", 10, {"batch_axis": 1, "time_axis": 0},
         [x.transpose(0, 1).contiguous(), lengths],
         lambda x, n: reversed_steps(x.transpose(0, 1), n).transpose(0, 1))
    case("middle", "CenterCropPad", 18, {"axes": [1, 2]}, [x, integers([2, 5])], lambda x, _: F.pad(x[:, 1:3], (1, 2)))
    case("chosen", "Compress", 11, {"axis": 1}, [x, torch.tensor([True, False, False, True, True])],
         lambda x, c: x[:, c])
    columns = numbers(2, 12, 6)
    case("blocks", "Col2Im", 18, {"strides": [2, 1], "pads": [1, 0, 1, 0], "dilations": [1, 2]},
         [columns, integers([3, 5]), integers([2, 2])],
         lambda x, size, kernel: F.fold(x, (3, 5), (2, 2), (1, 2), (1, 0), (2, 1)))


def pools():
    x = numbers(2, 2, 5, 4)
    x[0, 0, :2, :2] = 0  # a window of zeros
    for p in (1, 2, 3):
        def pooled(x, p=p):
            blocks = F.unfold(F.pad(x.abs() ** p, (1, 1, 0, 0)), (2, 2), stride=(1, 2), dilation=(2, 1)).reshape(2, 2, 4, -1)
            sums = blocks.sum(2).reshape(2, 2, 3, 3)
            zero = sums == 0
            return torch.where(zero, 0, torch.where(zero, 1, sums) ** (1 / p))
        case(f"norms {p}", "LpPool", 18,
             {"p": p, "kernel_shape": [2, 2], "strides": [1, 2], "dilations": [2, 1], "pads": [0, 1, 0, 1]}, [x], pooled)
        case(f"norm of all {p}", "GlobalLpPool", 2, {"p": p}, [x],
             lambda x, p=p: torch.linalg.vector_norm(x, p, (2, 3), keepdim=True))
    small = numbers(2, 2, 2, 3)
    _, places = F.max_pool2d(numbers(2, 2, 4, 6), 2, return_indices=True)
    planes = torch.arange(4).reshape(2, 2, 1, 1) * 24
    case("put back", "MaxUnpool", 11, {"kernel_shape": [2, 2], "strides": [2, 2]}, [small, places + planes],
         lambda x, i: F.max_unpool2d(x, i - planes, 2))


def grids():
    for corners in (0, 1):
        case(f"plane {corners}", "AffineGrid", 20, {"align_corners": corners}, [numbers(2, 2, 3), integers([2, 1, 3, 4])],
             lambda t, _, corners=corners: F.affine_grid(t, (2, 1, 3, 4), align_corners=bool(corners)))
        case(f"volume {corners}", "AffineGrid", 20, {"align_corners": corners}, [numbers(1, 3, 4), integers([1, 1, 2, 3, 2])],
             lambda t, _, corners=corners: F.affine_grid(t, (1, 1, 2, 3, 2), align_corners=bool(corners)))


def transforms():
    complex_x, real_x, half = numbers(2, 6, 2), numbers(2, 6, 1), numbers(2, 4, 2)
    axis = integers(1)
    c = torch.view_as_complex
    r = torch.view_as_real
    case("forward", "DFT", 20, {}, [complex_x, None, axis], lambda x, *_: r(torch.fft.fft(c(x), dim=1)))
    case("longer", "DFT", 20, {}, [complex_x, integers(7), axis], lambda x, *_: r(torch.fft.fft(c(x), 7, dim=1)))
    case("back", "DFT", 20, {"inverse": 1}, [complex_x, None, axis], lambda x, *_: r(torch.fft.ifft(c(x), dim=1)))
    case("one side", "DFT", 20, {"onesided": 1}, [real_x, None, axis], lambda x, *_: r(torch.fft.rfft(x[..., 0], dim=1)))
    for n in (6, 7):
        case(f"one side back {n}", "DFT", 20, {"inverse": 1, "onesided": 1}, [half, integers(n), axis],
             lambda x, *_, n=n: torch.fft.irfft(c(x), n, dim=1)[..., None])
    signal, window = numbers(2, 11, 1), numbers(4, low=0.5)
    for onesided in (0, 1):
        setting(f"frames {onesided}", "STFT", 17, {"onesided": onesided}, [signal, integers(3), window],
                lambda x, _, w, onesided=onesided: r(torch.stft(x[..., 0], 4, 3, 4, w, center=False, onesided=bool(onesided),
                                                               return_complex=True)).transpose(1, 2), [2])


def regions():
    x = numbers(2, 2, 5, 6)
    rois = torch.tensor([[0.3, 0.2, 3.1, 3.7], [-1.4, 1.1, 2.2, 6.3], [2.2, 1.7, 7.9, 3.1]])
    batches = integers([1, 0, 1])
    boxes = torch.cat([batches.double()[:, None], rois], 1)
    for aligned, mode in ((True, "half_pixel"), (False, "output_half_pixel")):
        for ratio in (0, 2):
            setting(f"{mode} {ratio}", "RoiAlign", 22,
                    {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 0.75,
                     "coordinate_transformation_mode": mode}, [x, rois, batches],
                    lambda x, *_, aligned=aligned, ratio=ratio: vision.roi_align(x, boxes, (2, 3), 0.75, ratio, aligned), [1])
    setting("largest", "MaxRoiPool", 22, {"pooled_shape": [2, 3], "spatial_scale": 0.75}, [x, boxes],
            lambda x, _: vision.roi_pool(x, boxes, (2, 3), 0.75), [1])
    # Two groups of offsets, and of channels; odd strides, padding and dilations.
    x, w, b = numbers(2, 4, 5, 6), numbers(2, 2, 2, 3), numbers(2)
    offset, mask = numbers(2, 24, 5, 3, low=-2, high=2), numbers(2, 12, 5, 3, low=0.1)
    plain = {"strides": [1, 2], "pads": [1, 2, 1, 2], "dilations": [2, 2], "group": 2, "offset_group": 2}
    case("moved, with a mask", "DeformConv", 22, plain, [x, w, offset, b, mask],
         lambda x, w, o, b, m: vision.deform_conv2d(x, o, w, b, (1, 2), (1, 2), (2, 2), m))
    case("moved", "DeformConv", 22, plain, [x, w, offset], lambda x, w, o: vision.deform_conv2d(x, o, w, None, (1, 2), (1, 2), (2, 2)))
    case("determinants", "Det", 22, {}, [numbers(2, 3, 3)], torch.linalg.det)


fake = []


def fake_quantization():
    """Numbers inside, at the ends and outside of the range."""
    x = numbers(3, 8, low=-2, high=2).float()
    x[0, :4] = torch.tensor([0.25, 0.75, -0.25, 5.0])
    for type_name, low, high in (("int8", -128, 127), ("uint8", 0, 255)):
        for axis in (None, 0, 1):
            count = 1 if axis is None else x.shape[axis]
            scale = torch.linspace(0.0041937, 0.0121773, count, dtype=torch.float32)  # no halves: PyTorch multiplies by 1 / scale
            zero = (torch.arange(count) % 5 + (3 if low < 0 else 120)).int()
            own = x.clone().requires_grad_()
            if axis is None:
                y = torch.fake_quantize_per_tensor_affine(own, scale[0].item(), int(zero[0]), low, high)
            else:
                y = torch.fake_quantize_per_channel_affine(own, scale, zero, axis, low, high)
            dy = numbers(*y.shape).float()
            (dx,) = torch.autograd.grad((y * dy).sum(), own)
            fake.append({"type": type_name, "axis": axis, "shape": list(x.shape), "x": x.flatten().tolist(), "scale": scale.tolist(),
                         "zero_point": zero.tolist(), "y": y.detach().flatten().tolist(), "dy": dy.flatten().tolist(),
                         "dx": dx.flatten().tolist()})


def main():
    for part in (moves, pools, grids, transforms, regions, fake_quantization):
        part()
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "signal_gradients.json"
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    quantized = ",\n".join(json.dumps(c, separators=(",", ":")) for c in fake)
    path.write_text('{"cases":[\n' + lines + '\n],"fake_quantization":[\n' + quantized + "\n]}\n")
    print(len(cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
