// The chat templates, in the order in which a tokenizer's own one is compared with them.
TEMPLATE(chatml)
TEMPLATE(llama3)
TEMPLATE(gemma)
TEMPLATE(phi3)
TEMPLATE(mistral)
TEMPLATE(mistral_v3)
TEMPLATE(mistral_tekken)
