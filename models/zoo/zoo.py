"""All networks of the zoo: a list in each of these files."""

import own_generative
import own_others
import own_recommender
import own_recurrent
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
