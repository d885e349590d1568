"""Networks of transformers that generate text from text, pictures or sound."""

from network import floats, mask, tokens
from transformers_common import VOCABULARY, VISION, EAGER, free_length, hidden, network, IDS

PAIR = {
    "input_ids": tokens(10, VOCABULARY, 3),
    "attention_mask": mask(10),
    "decoder_input_ids": tokens(7, VOCABULARY, 3),
}
T5 = dict(
    vocab_size=VOCABULARY,
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=2,
    num_decoder_layers=2,
    num_heads=4,
    pad_token_id=0,
    tie_word_embeddings=False,
    **EAGER
)
BART = dict(
    vocab_size=VOCABULARY,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=40,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
    tie_word_embeddings=False,
)


def pair(name, model, settings, inputs=PAIR, family="encoder-decoder", **kwargs):
    return network(name, family, inputs, settings, model, **kwargs)


PAIRS = [
    pair("t5", "T5ForConditionalGeneration", T5),
    pair("t5 gated", "T5ForConditionalGeneration", {**T5, "feed_forward_proj": "gated-gelu"}),
    pair("mt5", "MT5ForConditionalGeneration", T5),
    pair("umt5", "UMT5ForConditionalGeneration", T5),
    pair("bart", "BartForConditionalGeneration", BART),
    pair("mbart", "MBartForConditionalGeneration", BART),
    pair("pegasus", "PegasusForConditionalGeneration", BART),
    pair("marian", "MarianMTModel", {**BART, "decoder_vocab_size": VOCABULARY}),
    pair("m2m_100", "M2M100ForConditionalGeneration", BART),
    pair("blenderbot", "BlenderbotForConditionalGeneration", BART),
]
LONGER = {
    "input_ids": tokens(14, VOCABULARY, 3),
    "attention_mask": mask(14),
    "decoder_input_ids": tokens(9, VOCABULARY, 3),
}
PAIRS.append(free_length(PAIRS[0], LONGER))
PIXELS = {"pixel_values": floats(3, 32, 32)}
STAGES = dict(num_labels=10, image_size=32)


def vision(name, model, settings, inputs=PIXELS, family="vision", **kwargs):
    return network(name, family, inputs, settings, model, **kwargs)


TOWER = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
CLIP = dict(
    text_config={
        **TOWER,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 40,
        "eos_token_id": 2,
        "bos_token_id": 1,
        "pad_token_id": 0,
    },
    vision_config={**TOWER, "image_size": 32, "patch_size": 8},
    projection_dim=16,
)


def embeddings(result):
    return result["text_embeds"], result["image_embeds"]


VISIONS = [
    vision("vit", "ViTForImageClassification", VISION),
    vision("deit", "DeiTForImageClassification", VISION),
    vision(
        "beit",
        "BeitForImageClassification",
        {**EAGER, **VISION, "use_relative_position_bias": True},
    ),
    vision("dinov2", "Dinov2ForImageClassification", {**VISION, "mlp_ratio": 2}),
    vision(
        "dinov3_vit",
        "DINOv3ViTModel",
        {**VISION, "pos_embed_rescale": None},
        pick=hidden,
        loss="mse",
    ),
    vision(
        "swin",
        "SwinForImageClassification",
        {
            **EAGER,
            **STAGES,
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [2, 4],
            "window_size": 4,
            "patch_size": 4,
        },
    ),
    vision(
        "swinv2",
        "Swinv2ForImageClassification",
        {
            **EAGER,
            **STAGES,
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [2, 4],
            "window_size": 4,
            "patch_size": 4,
        },
    ),
    vision(
        "convnext",
        "ConvNextForImageClassification",
        {**STAGES, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    ),
    vision(
        "convnextv2",
        "ConvNextV2ForImageClassification",
        {**STAGES, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    ),
    vision(
        "resnet",
        "ResNetForImageClassification",
        {**STAGES, "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    ),
    vision(
        "regnet",
        "RegNetForImageClassification",
        {
            **STAGES,
            "embedding_size": 8,
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "groups_width": 8,
        },
    ),
    vision(
        "mobilevit",
        "MobileViTForImageClassification",
        {
            **STAGES,
            "hidden_sizes": [16, 24, 32],
            "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 32],
            "num_attention_heads": 4,
        },
        {"pixel_values": floats(3, 64, 64)},
    ),
    vision(
        "mobilenet_v2",
        "MobileNetV2ForImageClassification",
        {**STAGES, "depth_multiplier": 0.35},
        {"pixel_values": floats(3, 128, 128)},
    ),
    vision(
        "efficientnet",
        "EfficientNetForImageClassification",
        {**STAGES, "width_coefficient": 0.5, "depth_coefficient": 0.3, "hidden_dim": 640},
    ),
    vision(
        "poolformer",
        "PoolFormerForImageClassification",
        {**STAGES, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    ),
    vision(
        "levit",
        "LevitForImageClassification",
        {
            "num_labels": 10,
            "image_size": 128,
            "hidden_sizes": [16, 24, 32],
            "num_attention_heads": [2, 2, 2],
            "depths": [1, 1, 1],
            "key_dim": [8, 8, 8],
        },
        {"pixel_values": floats(3, 128, 128)},
    ),
    vision(
        "pvt_v2",
        "PvtV2ForImageClassification",
        {
            **STAGES,
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "mlp_ratios": [2, 2, 2, 2],
        },
    ),
    vision(
        "segformer",
        "SegformerForSemanticSegmentation",
        {
            "num_labels": 5,
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
            "mlp_ratios": [2, 2, 2, 2],
        },
        {"pixel_values": floats(3, 64, 64)},
    ),
    vision(
        "vit_mae encoder",
        "ViTMAEModel",
        {**VISION, "mask_ratio": 0.0},
        {**PIXELS, "noise": floats(16)},
        pick=hidden,
        loss="mse",
    ),
    vision(
        "videomae",
        "VideoMAEForVideoClassification",
        {**VISION, "num_frames": 4, "tubelet_size": 2},
        {"pixel_values": floats(4, 3, 32, 32)},
        family="video",
    ),
    vision(
        "timesformer",
        "TimesformerForVideoClassification",
        {**VISION, "num_frames": 4},
        {"pixel_values": floats(4, 3, 32, 32)},
        family="video",
    ),
    vision(
        "vivit",
        "VivitForVideoClassification",
        {**VISION, "num_frames": 4, "tubelet_size": [2, 8, 8]},
        {"pixel_values": floats(4, 3, 32, 32)},
        family="video",
    ),
    vision(
        "clip", "CLIPModel", CLIP, {**IDS, **PIXELS}, "text and image", pick=embeddings, loss="mse"
    ),
    vision(
        "siglip",
        "SiglipModel",
        {k: v for k, v in CLIP.items() if k != "projection_dim"},
        {**IDS, **PIXELS},
        "text and image",
        pick=embeddings,
        loss="mse",
    ),
    vision(
        "dpt",
        "DPTForDepthEstimation",
        {
            **VISION,
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 8, 16, 16],
            "fusion_hidden_size": 16,
            "is_hybrid": False,
        },
        pick=lambda r: r["predicted_depth"],
        loss="mse",
    ),
    vision(
        "swin2sr",
        "Swin2SRForImageSuperResolution",
        dict(
            image_size=16,
            patch_size=1,
            embed_dim=16,
            depths=[1, 1],
            num_heads=[2, 2],
            window_size=4,
            upscale=2,
        ),
        {"pixel_values": floats(3, 16, 16)},
        "super resolution",
        pick=lambda r: r["reconstruction"],
        loss="mse",
    ),
]
WAVE = dict(
    vocab_size=20,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    conv_dim=[16, 16, 16],
    conv_kernel=[10, 3, 3],
    conv_stride=[5, 2, 2],
    num_feat_extract_layers=3,
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=2,
    pad_token_id=0,
    mask_time_prob=0.0,
)
SOUND = {"input_values": floats(400)}
WHISPER = {
    **{k: v for k, v in BART.items() if "max_position" not in k},
    "num_mel_bins": 16,
    "max_source_positions": 20,
    "max_target_positions": 16,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
SPEECH = [
    network("wav2vec2", "speech", SOUND, WAVE, "Wav2Vec2ForCTC"),
    network("hubert", "speech", SOUND, WAVE, "HubertForCTC"),
    network("wavlm", "speech", SOUND, WAVE, "WavLMForCTC"),
    network("sew", "speech", SOUND, {**WAVE, "squeeze_factor": 2}, "SEWForCTC"),
    network(
        "whisper",
        "speech",
        {"input_features": floats(16, 40), "decoder_input_ids": tokens(7, VOCABULARY, 3)},
        WHISPER,
        "WhisperForConditionalGeneration",
    ),
    network(
        "speech_to_text",
        "speech",
        {"input_features": floats(40, 16), "decoder_input_ids": tokens(7, VOCABULARY, 3)},
        {
            **BART,
            "input_feat_per_channel": 16,
            "conv_channels": 16,
            "max_source_positions": 64,
            "max_target_positions": 16,
        },
        "Speech2TextForConditionalGeneration",
    ),
    network(
        "audio_spectrogram_transformer",
        "speech",
        {"input_values": floats(48, 32)},
        {**VISION, "num_mel_bins": 32, "max_length": 48, "frequency_stride": 8, "time_stride": 8},
        "ASTForAudioClassification",
    ),
    network(
        "patchtst",
        "time series",
        {"past_values": floats(32, 3)},
        dict(
            num_input_channels=3,
            context_length=32,
            patch_length=8,
            patch_stride=8,
            prediction_length=8,
            d_model=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=48,
            loss="mse",
            num_targets=4,
            norm_type="layernorm",
        ),
        "PatchTSTForPrediction",
        pick=lambda r: r["prediction_outputs"],
        loss="mse",
    ),
    network(
        "decision_transformer",
        "decoder",
        {
            "states": floats(6, 5),
            "actions": floats(6, 2),
            "returns_to_go": floats(6, 1),
            "timesteps": tokens(6, 20),
        },
        dict(
            state_dim=5,
            act_dim=2,
            hidden_size=32,
            n_layer=2,
            n_head=4,
            n_positions=40,
            max_ep_len=30,
        ),
        "DecisionTransformerModel",
        pick=lambda r: r["action_preds"],
        loss="mse",
    ),
]
NETWORKS = PAIRS + VISIONS + SPEECH
