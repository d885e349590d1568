// The losses that are guessed; a case that two forms take with equal certainty is left open.
FORM(classes)
FORM(probabilities)
FORM(binary)
FORM(regression)
