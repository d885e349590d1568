"""Networks of timm with random weights, small ones of each family."""

import timm
from timm import layers
from timm.models import convmixer, focalnet, metaformer, mlp_mixer, volo

from network import Network, floats

CLASSES = 10


def network(name, size=64, **settings):
    return Network(
        name,
        lambda: timm.create_model(name, pretrained=False, num_classes=CLASSES, **settings),
        {"image": floats(3, size, size)},
        family="timm",
    )


def built(name, build, size=64):
    return Network(name, build, {"image": floats(3, size, size)}, family="timm")


MIXER = dict(num_classes=CLASSES, img_size=32, patch_size=8, embed_dim=32, num_blocks=2)
STAGES = dict(depths=(1, 1, 1, 1), num_classes=CLASSES)
SMALL = dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4)
NETWORKS = [
    network("resnet10t"),
    network("legacy_seresnet18"),
    network("ecaresnet50t", layers=(1, 1, 1, 1)),
    network("res2net50_26w_4s", layers=(1, 1, 1, 1)),
    network("efficientnet_lite0", size=128),
    network("mobilenetv3_small_050"),
    network("lcnet_035"),
    network("tinynet_e"),
    network("ghostnet_050"),
    network("ese_vovnet19b_slim_dw"),
    network("cs3darknet_focus_s"),
    network("convnext_atto"),
    built("convmixer", lambda: convmixer.ConvMixer(32, 2, 3, 8, num_classes=CLASSES)),
    network("vit_tiny_patch16_224", size=32, **SMALL),
    network("deit_tiny_distilled_patch16_224", size=32, **SMALL),
    network("cait_xxs24_224", size=32, **SMALL, init_values=0.1),
    network("xcit_nano_12_p8_224", size=32, img_size=32, depth=2),
    network("eva02_tiny_patch14_224", size=32, **SMALL),
    built("mlp_mixer", lambda: mlp_mixer.MlpMixer(**MIXER), 32),
    built(
        "resmlp",
        lambda: mlp_mixer.MlpMixer(
            **MIXER, mlp_ratio=4, block_layer=mlp_mixer.ResBlock, norm_layer=mlp_mixer.Affine
        ),
        32,
    ),
    built(
        "gmlp",
        lambda: mlp_mixer.MlpMixer(
            **MIXER,
            mlp_ratio=6,
            block_layer=mlp_mixer.SpatialGatingBlock,
            mlp_layer=layers.GatedMlp
        ),
        32,
    ),
    built(
        "poolformer",
        lambda: metaformer.MetaFormer(
            **STAGES,
            dims=(16, 24, 32, 48),
            norm_layers=metaformer.GroupNorm1,
            downsample_norm=None,
            layer_scale_init_values=0.1
        ),
    ),
    network("efficientvit_m0", size=128),
    network("pit_ti_224", img_size=64),
    network("edgenext_xx_small"),
    network("mobilevit_xxs"),
    network("mobilevitv2_050"),
    network("davit_tiny", depths=(1, 1, 1, 1), embed_dims=(16, 24, 32, 64), num_heads=(1, 2, 2, 4)),
    built("focalnet", lambda: focalnet.FocalNet(**STAGES, embed_dim=16)),
    network("starnet_s1"),
    network("inception_next_atto"),
    built(
        "volo",
        lambda: volo.VOLO(
            [1, 1, 1, 1],
            64,
            embed_dims=[32, 64, 64, 64],
            num_heads=[2, 4, 4, 4],
            num_classes=CLASSES,
        ),
    ),
    network("tnt_s_patch16_224", img_size=32, size=32, depth=2),
    network(
        "swin_s3_tiny_224",
        img_size=64,
        depths=(1, 1, 1, 1),
        window_size=2,
        embed_dim=24,
        num_heads=(1, 2, 2, 4),
    ),
]
