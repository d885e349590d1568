"""All networks of the zoo: the lists of these files, and scikit-learn's models."""

import own_generative
import own_others
import own_recommender
import own_recurrent
import sklearn_models
import timm_networks
import transformers_other
import transformers_text
import torchvision_networks

FILES = {
    "torchvision": [torchvision_networks],
    "transformers": [transformers_text, transformers_other],
    "timm": [timm_networks],
    "own": [own_recurrent, own_generative, own_recommender, own_others],
}
NETWORKS = {
    f"{source}/{network.name}": network
    for source, files in FILES.items()
    for file in files
    for network in file.NETWORKS
}
SKLEARN = sklearn_models.NAMES  # by skl2onnx alone
