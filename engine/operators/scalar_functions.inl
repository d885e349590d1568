// The scalar functions, one row each: what is defined of TANDEM_FUNCTION, TANDEM_PREDICATE and
// TANDEM_COMPOSED before this file is included is made of every row.
//
//   TANDEM_FUNCTION(code, operator, operands, element types, options…)
//     `code` is the function in kernels/shared/scalar.h: operands, then attributes in the order of
//     the row. A tile_CODE in kernels/cpu/tile_functions.inl is its code for vectors; without one
//     it runs through its scalar code inside of tiles. The options are those of ScalarOptions
//     (scalar_functions.h); a gradient is written with what Slope has (expression.h).
//   TANDEM_PREDICATE(…): the same with a bool result, and without a gradient.
//   TANDEM_COMPOSED(operator, attributes, expression): needs no code, since it becomes nodes of
//     other functions at import; its gradient is theirs.
//
// A function is direct where a composed one would be slow (many steps, no vector code for a part),
// or wrong at the ends: 0 times infinity in a branch that is not taken, half a slope where two
// operands of Max are equal.
#ifndef TANDEM_FUNCTION
#define TANDEM_FUNCTION(...)
#endif
#ifndef TANDEM_PREDICATE
#define TANDEM_PREDICATE(...) TANDEM_FUNCTION(__VA_ARGS__)
#endif
#ifndef TANDEM_COMPOSED
#define TANDEM_COMPOSED(...)
#endif

// Signs and powers of e

TANDEM_FUNCTION(neg, "Neg", 1, numbers, .gradient = {[](Slope& g) { return -g.dy; }})

TANDEM_FUNCTION(abs, "Abs", 1, numbers, .gradient = {[](Slope& g) { return g.dy * sign(g.x); }})

// NaN stays NaN.
TANDEM_FUNCTION(sign, "Sign", 1, numbers, .gradient = {flat})

// Precision::float32: the slope or the range does not fit 16 bits.
TANDEM_FUNCTION(exp, "Exp", 1, floats, .cost = 400, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy * g.y; }})

TANDEM_FUNCTION(log, "Log", 1, floats, .cost = 400, .precision = Precision::float32,
                .domain = {0, infinity},
                .gradient = {[](Slope& g) { return g.dy / g.x; }})

TANDEM_FUNCTION(sqrt, "Sqrt", 1, floats, .cost = 200, .precision = Precision::float32,
                .domain = {0, infinity},
                .gradient = {[](Slope& g) { return g.dy * 0.5 / g.y; }})

TANDEM_FUNCTION(reciprocal, "Reciprocal", 1, floats, .cost = 200, .precision = Precision::float32,
                .domain = {0, infinity},
                .gradient = {[](Slope& g) { return -(g.dy * g.y * g.y); }})

TANDEM_FUNCTION(erf, "Erf", 1, floats, .cost = 400, .precision = Precision::float32,
                .gradient = {[](Slope& g) {
                  return g.dy * (exp(-(g.x * g.x)) * (2 * std::numbers::inv_sqrtpi));
                }})

// Activations. Those of ONNX's and PyTorch's definition at the ends, NaN stays NaN.

TANDEM_FUNCTION(tanh, "Tanh", 1, floats, .cost = 400,
                .gradient = {[](Slope& g) { return g.by("TanhGrad", g.y); }})

TANDEM_FUNCTION(sigmoid, "Sigmoid", 1, floats, .cost = 400,
                .gradient = {[](Slope& g) { return g.by("SigmoidGrad", g.y); }})

// log(1 + exp(x))
TANDEM_FUNCTION(softplus, "Softplus", 1, floats, .cost = 700, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy * sigmoid(g.x); }})

// max(x, 0); the derivative at 0 is 0
TANDEM_FUNCTION(relu, "Relu", 1, numbers,
                .gradient = {[](Slope& g) { return g.by("ReluGrad", g.y); }})

// x > 0 ? x : alpha x
TANDEM_FUNCTION(leaky_relu, "LeakyRelu", 1, floats, .attributes = {{"alpha", 0.01}},
                .gradient = {[](Slope& g) { return g.by("LeakyReluGrad", g.x); }})

// min(max(x, min), max); the derivative on the border is 1
TANDEM_FUNCTION(clip, "Clip", 1, numbers, .attributes = {{"min", -infinity}, {"max", infinity}},
                .gradient = {[](Slope& g) { return g.by("ClipGrad", g.x); }})

// x Phi(x), or its approximation by tanh
TANDEM_FUNCTION(gelu, "Gelu", 1, floats, .cost = 400,
                .attributes = {{"approximate", std::string("none"), {"none", "tanh"}}},
                .gradient = {[](Slope& g) { return g.by("GeluGrad", g.x); }})

TANDEM_PREDICATE(logical_not, "Not", 1, booleans)

// Two operands

TANDEM_FUNCTION(add, "Add", 2, numbers,
                .gradient = {[](Slope& g) { return g.dy; }, [](Slope& g) { return g.dy; }})

TANDEM_FUNCTION(sub, "Sub", 2, numbers,
                .gradient = {[](Slope& g) { return g.dy; }, [](Slope& g) { return -g.sum(g.dy); }})

TANDEM_FUNCTION(mul, "Mul", 2, numbers,
                .gradient = {[](Slope& g) { return g.dy * g.b; },
                             [](Slope& g) { return g.dy * g.a; }})

TANDEM_FUNCTION(div, "Div", 2, numbers, .cost = 200,
                .gradient = {[](Slope& g) { return g.dy / g.b; },
                             [](Slope& g) { return -g.sum(g.dy / g.b * g.y); }})

// The larger (smaller) operand gets dy; equal ones share it. Where one is NaN, so is y, and dy
// passes to both, as in PyTorch.
TANDEM_FUNCTION(maximum, "Max", 2, numbers, .gradient = {
                  [](Slope& g) { return extremum(g, g.a < g.b); },
                  [](Slope& g) { return extremum(g, g.b < g.a); }})

TANDEM_FUNCTION(minimum, "Min", 2, numbers, .gradient = {
                  [](Slope& g) { return extremum(g, g.a > g.b); },
                  [](Slope& g) { return extremum(g, g.b > g.a); }})

TANDEM_PREDICATE(equal, "Equal", 2, any)
TANDEM_PREDICATE(less, "Less", 2, numbers)
TANDEM_PREDICATE(greater, "Greater", 2, numbers)
TANDEM_PREDICATE(less_or_equal, "LessOrEqual", 2, numbers)
TANDEM_PREDICATE(greater_or_equal, "GreaterOrEqual", 2, numbers)
TANDEM_PREDICATE(logical_and, "And", 2, booleans)
TANDEM_PREDICATE(logical_or, "Or", 2, booleans)
TANDEM_PREDICATE(logical_xor, "Xor", 2, booleans)

// Helpers of gradients, in one pass where nothing is fused

// y <= 0 ? 0 : dy
TANDEM_FUNCTION(relu_grad, "ReluGrad", 2, floats, .with = "y")

// x > 0 ? dy : alpha dy
TANDEM_FUNCTION(leaky_relu_grad, "LeakyReluGrad", 2, floats, .attributes = {{"alpha", 0.01}},
                .with = "x")

// min <= x <= max ? dy : 0
TANDEM_FUNCTION(clip_grad, "ClipGrad", 2, floats,
                .attributes = {{"min", -infinity}, {"max", infinity}}, .with = "x")

// dy (Phi(x) + x phi(x)), or the derivative of the approximation by tanh
TANDEM_FUNCTION(gelu_grad, "GeluGrad", 2, floats, .cost = 700,
                .attributes = {{"approximate", std::string("none"), {"none", "tanh"}}},
                .with = "x")

// dy (1 - y^2)
TANDEM_FUNCTION(tanh_grad, "TanhGrad", 2, floats, .with = "y")

// dy y (1 - y)
TANDEM_FUNCTION(sigmoid_grad, "SigmoidGrad", 2, floats, .with = "y")

#undef TANDEM_FUNCTION
#undef TANDEM_PREDICATE
#undef TANDEM_COMPOSED
