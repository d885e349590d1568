"""Networks of Keras 3, for any of its backends: images have their channels last, as Keras has them by default."""

import dataclasses
import typing

import numpy as np

CLASSES, VOCABULARY = 5, 30


@dataclasses.dataclass(frozen=True)
class KerasNetwork:
    """name: also its folder. build: of keras.layers and the inputs, makes the output. inputs: shape of a sample, and "int32" for ids.

    loss: "cross_entropy" of [batch, CLASSES], or "mse" of [batch, 1].
    """

    name: str
    build: typing.Callable
    inputs: dict
    loss: str = "cross_entropy"


def _mlp(layers, x):
    x = layers.Dense(12, activation="relu")(x)
    x = layers.Dense(8, activation="tanh")(x)
    return layers.Dense(CLASSES)(x)


def _cnn(layers, x):
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Flatten()(x)
    return layers.Dense(CLASSES)(x)


def _separable(layers, x):
    x = layers.Conv2D(8, 3, strides=2, padding="same")(x)
    for width in 8, 12:
        x = layers.DepthwiseConv2D(3, padding="same", activation="relu6")(x)
        x = layers.Conv2D(width, 1, activation="relu6")(x)
    x = layers.SeparableConv2D(8, 3, activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Dense(CLASSES)(x)


def _batch_norm(layers, x):
    shortcut = layers.Conv2D(6, 1)(x)
    x = layers.Conv2D(6, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    x = layers.Add()([x, shortcut])
    x = layers.AveragePooling2D(2)(x)
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Dense(CLASSES)(x)


def _transposed(layers, x):
    x = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.GlobalMaxPooling2D()(x)
    return layers.Dense(CLASSES)(x)


def _layer_norm(layers, x):
    x = layers.Dense(12)(x)
    x = layers.LayerNormalization()(x)
    x = layers.Activation("gelu")(x)
    return layers.Dense(CLASSES)(x)


def _conv1d(layers, x):
    x = layers.Conv1D(8, 3, padding="causal", activation="relu")(x)
    x = layers.Conv1D(6, 3, dilation_rate=2, activation="elu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    return layers.Dense(CLASSES)(x)


def _lstm(layers, x):
    x = layers.LSTM(6, return_sequences=True)(x)
    x = layers.LSTM(5)(x)
    return layers.Dense(CLASSES)(x)


def _gru(layers, x):
    x = layers.GRU(6)(x)
    return layers.Dense(CLASSES)(x)


def _bidirectional(layers, x):
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    x = layers.TimeDistributed(layers.Dense(4, activation="relu"))(x)
    x = layers.GlobalAveragePooling1D()(x)
    return layers.Dense(CLASSES)(x)


def _embedding(layers, ids):
    x = layers.Embedding(VOCABULARY, 8)(ids)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(8, activation="swish")(x)
    return layers.Dense(CLASSES)(x)


def _attention(layers, x):
    attended = layers.MultiHeadAttention(num_heads=2, key_dim=4)(x, x)
    x = layers.LayerNormalization()(layers.Add()([x, attended]))
    inner = layers.Dense(12, activation="relu")(x)
    x = layers.LayerNormalization()(layers.Add()([x, layers.Dense(8)(inner)]))
    x = layers.GlobalAveragePooling1D()(x)
    return layers.Dense(CLASSES)(x)


def _two_inputs(layers, wide, ids):
    deep = layers.Flatten()(layers.Embedding(VOCABULARY, 4)(ids))
    x = layers.Concatenate()([wide, layers.Dense(6, activation="relu")(deep)])
    return layers.Dense(1)(x)


IMAGE, SERIES, IDS = (12, 12, 3), (9, 8), ("int32", 7)
NETWORKS = [
    KerasNetwork("mlp", _mlp, {"x": (10,)}),
    KerasNetwork("cnn", _cnn, {"image": IMAGE}),
    KerasNetwork("separable", _separable, {"image": IMAGE}),
    KerasNetwork("batch_norm", _batch_norm, {"image": IMAGE}),
    KerasNetwork("transposed", _transposed, {"image": IMAGE}),
    KerasNetwork("layer_norm", _layer_norm, {"x": (10,)}),
    KerasNetwork("conv1d", _conv1d, {"series": SERIES}),
    KerasNetwork("lstm", _lstm, {"series": SERIES}),
    KerasNetwork("gru", _gru, {"series": SERIES}),
    KerasNetwork("bidirectional", _bidirectional, {"series": SERIES}),
    KerasNetwork("embedding", _embedding, {"ids": IDS}),
    KerasNetwork("attention", _attention, {"series": SERIES}),
    KerasNetwork("two_inputs", _two_inputs, {"wide": (6,), "ids": IDS}, "mse"),
]


def network_of(name):
    return next(n for n in NETWORKS if n.name == name)


def make(network):
    """The model, seeded; no variable at a round number, so that each one counts and is known by its values."""
    import keras

    keras.utils.set_random_seed(0)
    inputs = []
    for name, shape in network.inputs.items():
        ids = shape[0] == "int32"
        inputs.append(keras.Input(shape[1:] if ids else shape, name=name, dtype="int32" if ids else "float32"))
    model = keras.Model(inputs[0] if len(inputs) == 1 else inputs, network.build(keras.layers, *inputs))
    random = np.random.default_rng(1)
    for variable in model.weights:
        if not str(variable.dtype).startswith("float"):
            continue
        value = np.array(keras.ops.convert_to_numpy(variable))
        noise = random.standard_normal(value.shape)
        value += 0.1 * np.abs(noise) if variable.path.endswith("moving_variance") else 0.02 * noise
        variable.assign(value)
    return model


def make_data(network, samples):
    """Inputs by name, and the targets."""
    random = np.random.default_rng(2)
    inputs = {}
    for name, shape in network.inputs.items():
        if shape[0] == "int32":
            inputs[name] = random.integers(0, VOCABULARY, (samples, *shape[1:])).astype(np.int32)
        else:
            inputs[name] = random.standard_normal((samples, *shape)).astype(np.float32)
    if network.loss == "mse":
        return inputs, random.standard_normal((samples, 1)).astype(np.float32)
    return inputs, random.integers(0, CLASSES, samples)
