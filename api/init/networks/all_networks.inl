// The kinds of network, the most particular first; the last one is every model.
NETWORK(transformer)
NETWORK(recurrent)
NETWORK(convolutional)
NETWORK(recommender)
NETWORK(perceptron)
