# How evenly ranks are asked for rows of a table that is divided among them: ids by Zipf's law, made unique
# on each rank, of ranks that keep every n-th row (as the engine's do) or a range of rows.
import numpy

rows, exponent, fields, steps = 1_000_000, 1.05, 26, 10
weights = 1 / numpy.arange(1, rows + 1) ** exponent
below = numpy.cumsum(weights) / weights.sum()
random = numpy.random.default_rng(1)
print("ranks  samples  ids    rows    cyclic  ranges   (most asked / mean)")
for ranks in (4, 8):
    for samples in (256, 2048):
        cyclic, ranges, asked = numpy.zeros(ranks), numpy.zeros(ranks), 0
        for _ in range(steps * ranks):
            unique = numpy.unique(numpy.searchsorted(below, random.random(samples * fields)))
            asked += len(unique)
            cyclic += numpy.bincount(unique % ranks, minlength=ranks)
            ranges += numpy.bincount(unique // -(-rows // ranks), minlength=ranks)
        print(f"{ranks:5}  {samples:7}  {samples * fields:5}  {asked // (steps * ranks):6}  "
              f"{cyclic.max() / cyclic.mean():6.3f}  {ranges.max() / ranges.mean():6.2f}")
