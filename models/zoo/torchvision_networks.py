"""torchvision's networks: every family of classification, segmentation, video, detection and optical flow, in small sizes."""

from functools import partial

import torch.nn as nn

from torchvision import models
from torchvision.models import detection, segmentation, video
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.efficientnet import FusedMBConvConfig, MBConvConfig
from torchvision.models.regnet import BlockParams
from torchvision.models.resnet import BasicBlock, Bottleneck

from network import Network, floats

IMAGE = {"image": floats(3, 64, 64)}
CLASSES = 10


def classifier(name, build, size=64, **kwargs):
    return Network(name, build, {"image": floats(3, size, size)}, family="classification", **kwargs)


def small_head(model, width):
    """AlexNet and VGG with a classifier of width 64 in place of 4096."""
    model.classifier = nn.Sequential(
        nn.Linear(width, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, CLASSES)
    )
    return model


def vgg(batch_norm):
    layers = models.vgg.make_layers([8, "M", 16, "M", 32, 32, "M", 32, "M", 32, "M"], batch_norm)
    return small_head(models.VGG(layers, CLASSES, init_weights=True), 32 * 49)


def resnet(block=BasicBlock, **kwargs):
    return models.ResNet(block, [1, 1, 1, 1], num_classes=CLASSES, **kwargs)


def efficientnet(settings, last=None):
    return models.EfficientNet(settings, dropout=0.0, num_classes=CLASSES, last_channel=last)


def efficientnet_b0():
    block = partial(MBConvConfig, width_mult=1.0, depth_mult=1.0)
    return efficientnet(
        [block(1, 3, 1, 16, 8, 1), block(6, 3, 2, 8, 16, 2), block(6, 5, 2, 16, 24, 1)]
    )


def efficientnet_v2():
    return efficientnet(
        [
            FusedMBConvConfig(1, 3, 1, 16, 16, 1),
            FusedMBConvConfig(4, 3, 2, 16, 24, 1),
            MBConvConfig(4, 3, 2, 24, 32, 2),
        ],
        64,
    )


def regnet(se):
    return models.RegNet(
        BlockParams.from_init_params(
            depth=8, w_0=16, w_a=10.0, w_m=2.2, group_width=8, se_ratio=0.25 if se else None
        ),
        num_classes=CLASSES,
    )


def convnext():
    return models.ConvNeXt(
        [CNBlockConfig(16, 32, 1), CNBlockConfig(32, 48, 2), CNBlockConfig(48, None, 1)],
        num_classes=CLASSES,
        layer_scale=0.5,
    )


def vit():
    return models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=CLASSES)


def swin(version):
    v2 = models.swin_transformer
    extra = {}
    if version == 2:
        extra = dict(block=v2.SwinTransformerBlockV2, downsample_layer=v2.PatchMergingV2)
    return models.SwinTransformer(
        [4, 4], 24, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=CLASSES, **extra
    )


def maxvit():
    return models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=CLASSES)


CLASSIFICATION = [
    classifier(
        "alexnet",
        lambda: small_head(models.AlexNet(CLASSES), 256 * 36),
        size=224,
        note="in eight windows of max pooling of the third step the two largest values are closer than float32 rounds (PyTorch in float64)",
    ),
    classifier("vgg", lambda: vgg(False), size=224),
    classifier("vgg_bn", lambda: vgg(True), size=224),
    classifier("resnet18", resnet),
    classifier("resnet50", lambda: resnet(Bottleneck)),
    classifier("resnext50", lambda: resnet(Bottleneck, groups=32, width_per_group=4)),
    classifier("wide_resnet50", lambda: resnet(Bottleneck, width_per_group=128)),
    classifier("densenet", lambda: models.DenseNet(8, (2, 2, 2, 2), 16, num_classes=CLASSES)),
    classifier("squeezenet1_0", lambda: models.squeezenet1_0(num_classes=CLASSES)),
    classifier("squeezenet1_1", lambda: models.squeezenet1_1(num_classes=CLASSES)),
    classifier(
        "googlenet",
        lambda: models.GoogLeNet(CLASSES, aux_logits=False, init_weights=False),
        size=128,
    ),
    classifier(
        "inception_v3",
        lambda: models.Inception3(CLASSES, aux_logits=False, init_weights=False),
        size=139,
    ),
    classifier(
        "mobilenet_v2",
        lambda: models.mobilenet_v2(width_mult=0.25, num_classes=CLASSES),
        size=128,
    ),
    classifier(
        "mobilenet_v3_small", lambda: models.mobilenet_v3_small(num_classes=CLASSES, width_mult=0.5)
    ),
    classifier(
        "mobilenet_v3_large",
        lambda: models.mobilenet_v3_large(num_classes=CLASSES, width_mult=0.25),
    ),
    classifier("mnasnet", lambda: models.MNASNet(0.25, CLASSES), size=128),
    classifier("shufflenet_v2", lambda: models.shufflenet_v2_x0_5(num_classes=CLASSES), size=128),
    classifier("efficientnet_b0", efficientnet_b0),
    classifier("efficientnet_v2", efficientnet_v2),
    classifier("regnet_x", lambda: regnet(False)),
    classifier("regnet_y", lambda: regnet(True)),
    classifier("convnext", convnext),
    classifier("vit_b_16", vit, size=32),
    classifier("swin", lambda: swin(1)),
    classifier("swin_v2", lambda: swin(2)),
    classifier("maxvit", maxvit),
]


def dense(result):
    return result["out"]


def both(result):
    return result["out"], result["aux"]


def dilated(layers=("layer4",)):
    backbone = resnet(Bottleneck, replace_stride_with_dilation=[False, True, True])
    names = {"layer4": "out", "layer3": "aux"}
    return models._utils.IntermediateLayerGetter(backbone, {k: names[k] for k in layers})


def fcn():
    return segmentation.FCN(
        dilated(("layer4", "layer3")),
        segmentation.fcn.FCNHead(2048, 5),
        segmentation.fcn.FCNHead(1024, 5),
    )


def deeplab():
    head = segmentation.deeplabv3.DeepLabHead(2048, 5, (2, 4))
    return segmentation.DeepLabV3(dilated(), head)


def lraspp():
    return segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5
    )


def deeplab_mobilenet():
    return segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5
    )


SEGMENTATION = [
    Network("fcn_resnet50", fcn, {"x": floats(3, 48, 48)}, pick=both, family="segmentation"),
    Network(
        "deeplabv3_resnet50", deeplab, {"x": floats(3, 48, 48)}, pick=dense, family="segmentation"
    ),
    Network(
        "deeplabv3_mobilenet_v3",
        deeplab_mobilenet,
        {"x": floats(3, 64, 64)},
        pick=dense,
        family="segmentation",
    ),
    Network(
        "lraspp_mobilenet_v3",
        lraspp,
        {"input": floats(3, 64, 64)},
        pick=dense,
        family="segmentation",
    ),
]
CLIP = {"video": floats(3, 4, 32, 32)}


def video_resnet(makers, stem):
    return video.resnet.VideoResNet(
        video.resnet.BasicBlock, makers, [1, 1, 1, 1], stem, num_classes=CLASSES
    )


def video_network(kind):
    r = video.resnet
    if kind == "r3d":
        return video_resnet([r.Conv3DSimple] * 4, r.BasicStem)
    if kind == "mc3":
        return video_resnet([r.Conv3DSimple] + [r.Conv3DNoTemporal] * 3, r.BasicStem)
    return video_resnet([r.Conv2Plus1D] * 4, r.R2Plus1dStem)


def mvit(version):
    block = video.mvit.MSBlockConfig
    settings = [
        block(1, 16, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 2, 2]),
        block(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 1, 1]),
    ]
    second = version == 2
    return video.MViT(
        (32, 32),
        4,
        settings,
        residual_pool=second,
        residual_with_cls_embed=not second,
        rel_pos_embed=second,
        proj_after_attn=second,
        num_classes=CLASSES,
        attention_dropout=0.0,
        stochastic_depth_prob=0.0,
    )


def s3d():
    model = video.S3D(CLASSES, 0.0)
    model.avgpool = nn.AvgPool3d(2, 1)  # 7 x 7 wants images of 224
    return model


def swin3d():
    return video.SwinTransformer3d(
        [2, 4, 4], 24, [2, 2], [2, 4], [2, 4, 4], stochastic_depth_prob=0.0, num_classes=CLASSES
    )


VIDEO = [
    Network("r3d", lambda: video_network("r3d"), CLIP, family="video"),
    Network("mc3", lambda: video_network("mc3"), CLIP, family="video"),
    Network("r2plus1d", lambda: video_network("r2plus1d"), CLIP, family="video"),
    Network("s3d", s3d, {"video": floats(3, 16, 64, 64)}, family="video"),
    Network("mvit_v1", lambda: mvit(1), CLIP, family="video"),
    Network("mvit_v2", lambda: mvit(2), CLIP, family="video"),
    Network("swin3d", swin3d, CLIP, family="video"),
]


def levels(result):
    return tuple(result.values())


def fpn():
    return BackboneWithFPN(
        resnet(Bottleneck),
        {"layer1": "0", "layer2": "1", "layer3": "2", "layer4": "3"},
        [256, 512, 1024, 2048],
        32,
    )


def mobilenet_fpn():
    backbone = models.mobilenet_v3_large(num_classes=CLASSES, width_mult=0.5)
    return detection.backbone_utils._mobilenet_extractor(backbone, True, 6)


class WithHead(nn.Module):
    """A pyramid of features and a head of torchvision's detectors over it: what they are trained on, without boxes."""

    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, x):
        return self.head(list(self.backbone(x).values()))


def one_stage(head):
    return lambda: WithHead(fpn(), head(32, 3, 5))


def region_proposals():
    return WithHead(fpn(), detection.rpn.RPNHead(32, 3))


def ssd():
    backbone = models.vgg16(weights=None)
    features = detection.ssd.SSDFeatureExtractorVGG(backbone.features, False)
    channels = [512, 1024, 512, 256, 256, 256]
    return WithHead(features, detection.ssd.SSDHead(channels, [4, 6, 6, 6, 4, 4], 5))


def ssdlite():
    backbone = models.mobilenet_v3_large(num_classes=CLASSES, reduced_tail=True, width_mult=0.5)
    return detection.ssdlite._mobilenet_extractor(backbone, 6, nn.BatchNorm2d)


def by_name(result):
    return tuple(result.values())


def proposals(result):
    return tuple(result[0]) + tuple(result[1])


DETECTION = [
    Network("resnet_fpn", fpn, {"x": floats(3, 64, 64)}, "mse", levels, family="detection"),
    Network(
        "mobilenet_v3_fpn",
        mobilenet_fpn,
        {"x": floats(3, 64, 64)},
        "mse",
        levels,
        family="detection",
    ),
    Network(
        "faster_rcnn_proposals",
        region_proposals,
        {"x": floats(3, 64, 64)},
        "mse",
        proposals,
        family="detection",
    ),
    Network(
        "retinanet",
        one_stage(detection.retinanet.RetinaNetHead),
        {"x": floats(3, 64, 64)},
        "mse",
        by_name,
        family="detection",
    ),
    Network(
        "fcos",
        one_stage(detection.fcos.FCOSHead),
        {"x": floats(3, 64, 64)},
        "mse",
        by_name,
        family="detection",
    ),
    Network("ssdlite", ssdlite, {"x": floats(3, 160, 160)}, "mse", levels, family="detection"),
    Network(
        "mask_rcnn_mask_head",
        lambda: nn.Sequential(
            detection.mask_rcnn.MaskRCNNHeads(16, (16, 16), 1),
            detection.mask_rcnn.MaskRCNNPredictor(16, 16, 5),
        ),
        {"x": floats(16, 14, 14)},
        "binary_cross_entropy",
        family="detection",
    ),
    Network(
        "keypoint_rcnn_head",
        lambda: nn.Sequential(
            detection.keypoint_rcnn.KeypointRCNNHeads(16, (16, 16)),
            detection.keypoint_rcnn.KeypointRCNNPredictor(16, 7),
        ),
        {"x": floats(16, 14, 14)},
        "mse",
        family="detection",
    ),
]


def raft():
    return models.optical_flow.raft_small(weights=None)


FLOW = [
    Network(
        "raft_small",
        raft,
        {"image1": floats(3, 128, 128), "image2": floats(3, 128, 128)},
        "mse",
        lambda flows: flows[-1],
        {"num_flow_updates": 2},
        lr=1e-6,
        family="optical flow",
        note="no exporter writes detach(), which RAFT calls on the flow before each update",
    ),
]
NETWORKS = CLASSIFICATION + SEGMENTATION + VIDEO + DETECTION + FLOW
