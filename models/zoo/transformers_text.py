"""Language models of transformers: encoders, decoders, mixtures of experts, state spaces."""

import transformers as hf

from network import mask, tokens
from transformers_common import LENGTH, VOCABULARY, SIZES, BATCHED, free_length, network, TEXT, IDS


def encoder(model, note="", **settings):
    """A masked-language model or a classifier over text with an attention mask."""
    name = getattr(hf, model).config_class.model_type
    return network(name, "encoder", TEXT, {**SIZES, **settings}, model, note=note)


def decoder(model, inputs=TEXT, **settings):
    """A causal language model."""
    name = getattr(hf, model).config_class.model_type
    sizes = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}
    return network(name, "decoder", inputs, {**sizes, **settings}, model)


GPT2 = dict(n_embd=32, n_layer=2, n_head=4, n_positions=40, vocab_size=VOCABULARY)
TEXT_NETWORKS = [
    encoder("BertForMaskedLM"),
    network(
        "bert classifier",
        "encoder",
        {**TEXT, "token_type_ids": tokens(LENGTH, 2)},
        {**SIZES, "num_labels": 5},
        "BertForSequenceClassification",
    ),
    encoder("DistilBertForMaskedLM", dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    encoder("RobertaForMaskedLM"),
    encoder("XLMRobertaForSequenceClassification", num_labels=4),
    encoder("ElectraForMaskedLM", embedding_size=16),
    encoder("AlbertForMaskedLM", embedding_size=16),
    encoder(
        "DebertaV2ForMaskedLM",
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
    ),
    encoder("MPNetForMaskedLM"),
    encoder(
        "ModernBertForMaskedLM",
        global_attn_every_n_layers=2,
        local_attention=8,
        cls_token_id=1,
        sep_token_id=2,
        note="dynamo hides by -3.4e38, so that a row that sees nothing sees all; PyTorch gives 0",
    ),
    encoder(
        "SqueezeBertForMaskedLM",
        q_groups=2,
        k_groups=2,
        v_groups=2,
        post_attention_groups=1,
        intermediate_groups=2,
        output_groups=2,
        embedding_size=32,
    ),
    encoder(
        "MobileBertForMaskedLM",
        embedding_size=16,
        intra_bottleneck_size=16,
        true_hidden_size=16,
        num_feedforward_networks=2,
    ),
    encoder("ConvBertForMaskedLM", embedding_size=16, conv_kernel_size=3),
    encoder("RoFormerForMaskedLM", embedding_size=16),
    encoder(
        "EsmForMaskedLM", position_embedding_type="rotary", mask_token_id=4, token_dropout=False
    ),
    network("fnet", "encoder", IDS, SIZES, "FNetForMaskedLM"),
    network(
        "xlnet",
        "encoder",
        IDS,
        dict(vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=48),
        "XLNetLMHeadModel",
    ),
    network(
        "layoutlm",
        "encoder",
        TEXT,
        {**SIZES, "max_2d_position_embeddings": 64},
        "LayoutLMForMaskedLM",
    ),
]
DECODERS = [
    network("gpt2 without mask", "decoder", IDS, GPT2, "GPT2LMHeadModel"),
    network("gpt2", "decoder", TEXT, GPT2, "GPT2LMHeadModel"),
    network(
        "gpt_neo",
        "decoder",
        TEXT,
        dict(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_layers=2,
            num_heads=4,
            attention_types=[[["global", "local"], 1]],
            max_position_embeddings=40,
            intermediate_size=48,
            window_size=6,
        ),
        "GPTNeoForCausalLM",
    ),
    decoder("GPTNeoXForCausalLM", rotary_pct=0.5),
    network("gptj", "decoder", TEXT, {**GPT2, "rotary_dim": 4}, "GPTJForCausalLM"),
    network("codegen", "decoder", TEXT, {**GPT2, "rotary_dim": 4}, "CodeGenForCausalLM"),
    network("gpt_bigcode", "decoder", TEXT, GPT2, "GPTBigCodeForCausalLM"),
    network(
        "opt",
        "decoder",
        TEXT,
        {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32},
        "OPTForCausalLM",
    ),
    network(
        "bloom",
        "decoder",
        TEXT,
        dict(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4),
        "BloomForCausalLM",
    ),
    network(
        "mpt",
        "decoder",
        TEXT,
        dict(
            vocab_size=VOCABULARY,
            d_model=32,
            n_layers=2,
            n_heads=4,
            expansion_ratio=2,
            max_seq_len=40,
        ),
        "MptForCausalLM",
    ),
    network(
        "ctrl",
        "decoder",
        TEXT,
        dict(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, dff=48, n_positions=40),
        "CTRLLMHeadModel",
    ),
    decoder("LlamaForCausalLM"),
    network(
        "llama without mask",
        "decoder",
        IDS,
        {**SIZES, "num_key_value_heads": 2},
        "LlamaForCausalLM",
    ),
    decoder("MistralForCausalLM", sliding_window=6),
    decoder("Qwen2ForCausalLM"),
    decoder("Qwen3ForCausalLM"),
    decoder("GemmaForCausalLM"),
    decoder("Gemma2ForCausalLM", sliding_window=6),
    decoder("Gemma3ForCausalLM", model_type="gemma3_text", sliding_window=6),
    decoder("PhiForCausalLM", partial_rotary_factor=0.5),
    decoder("Phi3ForCausalLM"),
    network(
        "falcon",
        "decoder",
        TEXT,
        {**SIZES, "alibi": False, "new_decoder_architecture": False},
        "FalconForCausalLM",
    ),
    decoder("StableLmForCausalLM", partial_rotary_factor=0.5),
    decoder("OlmoForCausalLM"),
    decoder("Olmo2ForCausalLM"),
    decoder("CohereForCausalLM"),
    decoder("GraniteForCausalLM"),
    decoder("SmolLM3ForCausalLM"),
    decoder("Starcoder2ForCausalLM"),
    decoder("GlmForCausalLM"),
    decoder("NemotronForCausalLM"),
    decoder("BioGptForCausalLM", inputs=TEXT),
]
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=24, **BATCHED)
MIXTURES = [
    decoder("MixtralForCausalLM", num_local_experts=4, num_experts_per_tok=2, **BATCHED),
    decoder("Qwen2MoeForCausalLM", num_experts=4, shared_expert_intermediate_size=24, **EXPERTS),
    decoder("Qwen3MoeForCausalLM", num_experts=4, **EXPERTS),
    decoder("OlmoeForCausalLM", num_experts=4, num_experts_per_tok=2, **BATCHED),
    decoder(
        "GptOssForCausalLM", num_local_experts=4, num_experts_per_tok=2, sliding_window=6, **BATCHED
    ),
    decoder(
        "DeepseekV3ForCausalLM",
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_rope_head_dim=4,
        qk_nope_head_dim=8,
        v_head_dim=8,
        num_key_value_heads=4,
        first_k_dense_replace=1,
        head_dim=4,
        **EXPERTS
    ),
    network(
        "switch_transformers",
        "mixture",
        {"input_ids": tokens(8, VOCABULARY, 3), "decoder_input_ids": tokens(6, VOCABULARY, 3)},
        dict(
            vocab_size=VOCABULARY,
            d_model=32,
            d_kv=8,
            d_ff=48,
            num_layers=2,
            num_decoder_layers=2,
            num_heads=4,
            num_experts=2,
            num_sparse_encoder_layers=1,
            num_sparse_decoder_layers=1,
            router_jitter_noise=0.0,
        ),
        "SwitchTransformersForConditionalGeneration",
        note="the classic exporter writes into the file how many experts the traced tokens have hit; onnxruntime refuses other tokens",
    ),
]
STATE = dict(
    vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=4, pad_token_id=0
)
STATE_SPACE = [
    network(
        "mamba", "state space", IDS, {**STATE, "expand": 2, "conv_kernel": 4}, "MambaForCausalLM"
    ),
    network(
        "mamba2",
        "state space",
        IDS,
        {**STATE, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4},
        "Mamba2ForCausalLM",
    ),
    network("falcon_mamba", "state space", IDS, STATE, "FalconMambaForCausalLM"),
    network(
        "rwkv",
        "state space",
        IDS,
        dict(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=2,
            attention_hidden_size=32,
            intermediate_size=48,
            context_length=40,
        ),
        "RwkvForCausalLM",
    ),
    decoder(
        "RecurrentGemmaForCausalLM",
        lru_width=32,
        attention_window_size=6,
        block_types=["recurrent", "attention"],
        conv1d_width=4,
    ),
    decoder("Lfm2ForCausalLM", layer_types=["conv", "full_attention"], block_multiple_of=8),
]
LONGER = {"input_ids": tokens(LENGTH + 5, VOCABULARY, 3), "attention_mask": mask(LENGTH + 5)}
WITH_LENGTH = ("bert", "distilbert", "roberta", "gpt2", "llama")
FREE_LENGTH = [free_length(n, LONGER) for n in TEXT_NETWORKS + DECODERS if n.name in WITH_LENGTH]
NETWORKS = TEXT_NETWORKS + DECODERS + MIXTURES + STATE_SPACE + FREE_LENGTH
