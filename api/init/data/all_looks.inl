// The kinds of data that are recognised, in the order in which they are asked.
LOOK(npz)
LOOK(npy)
LOOK(idx)
LOOK(cifar)
LOOK(tokens)
LOOK(csv)
LOOK(tsv)
LOOK(images)
