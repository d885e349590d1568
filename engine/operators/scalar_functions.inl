// The scalar functions, one row each: what is defined of TANDEM_FUNCTION, TANDEM_PREDICATE and
// TANDEM_COMPOSED before this file is included is made of every row.
//
//   TANDEM_FUNCTION(code, operator, operands, element types, options…)
//     `code` is the function in kernels/shared/scalar.h: operands, then attributes in the order of
//     the row. A tile_CODE in kernels/cpu/pointwise/tile_functions.inl is its code for vectors; without one
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

// exp(x) - 1 and log(1 + x), exact near 0
TANDEM_FUNCTION(expm1, "Expm1", 1, floats, .cost = 400, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy * (g.y + 1); }}, .engine_only = true)

TANDEM_FUNCTION(log1p, "Log1p", 1, floats, .cost = 3000, .precision = Precision::float32,
                .domain = {-1, infinity},
                .gradient = {[](Slope& g) { return g.dy / (g.x + 1); }}, .engine_only = true)

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

// Trigonometric and hyperbolic functions. (1 - x) (1 + x) is 1 - x^2 without its rounding near 1.

TANDEM_FUNCTION(sin, "Sin", 1, floats, .cost = 2500, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy * cos(g.x); }})

TANDEM_FUNCTION(cos, "Cos", 1, floats, .cost = 2500, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return -(g.dy * sin(g.x)); }})

TANDEM_FUNCTION(tan, "Tan", 1, floats, .cost = 4500, .precision = Precision::float32,
                .domain = {-std::numbers::pi / 2, std::numbers::pi / 2},
                .gradient = {[](Slope& g) { return g.dy * (g.y * g.y + 1); }})

TANDEM_FUNCTION(asin, "Asin", 1, floats, .cost = 2500, .precision = Precision::float32,
                .domain = {-1, 1},
                .gradient = {[](Slope& g) { return g.dy / sqrt((1 - g.x) * (1 + g.x)); }})

TANDEM_FUNCTION(acos, "Acos", 1, floats, .cost = 3000, .precision = Precision::float32,
                .domain = {-1, 1},
                .gradient = {[](Slope& g) { return -(g.dy / sqrt((1 - g.x) * (1 + g.x))); }})

TANDEM_FUNCTION(atan, "Atan", 1, floats, .cost = 3000, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy / (g.x * g.x + 1); }})

TANDEM_FUNCTION(sinh, "Sinh", 1, floats, .cost = 9000, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy * cosh(g.x); }})

TANDEM_FUNCTION(cosh, "Cosh", 1, floats, .cost = 5000, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy * sinh(g.x); }})

TANDEM_FUNCTION(asinh, "Asinh", 1, floats, .cost = 6000, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy / sqrt(g.x * g.x + 1); }})

TANDEM_FUNCTION(acosh, "Acosh", 1, floats, .cost = 5000, .precision = Precision::float32,
                .domain = {1, infinity},
                .gradient = {[](Slope& g) { return g.dy / sqrt((g.x - 1) * (g.x + 1)); }})

TANDEM_FUNCTION(atanh, "Atanh", 1, floats, .cost = 6000, .precision = Precision::float32,
                .domain = {-1, 1},
                .gradient = {[](Slope& g) { return g.dy / ((1 - g.x) * (1 + g.x)); }})

// Whole numbers. Numbers of 16 bits round to others before they are rounded here: float32.

// halves to even
TANDEM_FUNCTION(round, "Round", 1, floats, .cost = 1500, .precision = Precision::float32,
                .gradient = {flat})

TANDEM_FUNCTION(floor, "Floor", 1, floats, .cost = 1500, .precision = Precision::float32,
                .gradient = {flat})

TANDEM_FUNCTION(ceil, "Ceil", 1, floats, .cost = 1500, .precision = Precision::float32,
                .gradient = {flat})

// Activations. Those of ONNX's and PyTorch's definition at the ends, NaN stays NaN.

TANDEM_FUNCTION(tanh, "Tanh", 1, floats, .cost = 400,
                .gradient = {[](Slope& g) { return g.by("TanhGrad", g.y); }},
                .recurrent = true)

TANDEM_FUNCTION(sigmoid, "Sigmoid", 1, floats, .cost = 400,
                .gradient = {[](Slope& g) { return g.by("SigmoidGrad", g.y); }},
                .recurrent = true)

// log(1 + exp(x))
TANDEM_FUNCTION(softplus, "Softplus", 1, floats, .cost = 700, .precision = Precision::float32,
                .gradient = {[](Slope& g) { return g.dy * sigmoid(g.x); }},
                .recurrent = true)

// max(x, 0); the derivative at 0 is 0
TANDEM_FUNCTION(relu, "Relu", 1, numbers,
                .gradient = {[](Slope& g) { return g.by("ReluGrad", g.y); }},
                .recurrent = true)

// x > 0 ? x : alpha x
TANDEM_FUNCTION(leaky_relu, "LeakyRelu", 1, floats, .attributes = {{"alpha", 0.01}},
                .gradient = {[](Slope& g) { return g.by("LeakyReluGrad", g.x); }},
                .recurrent = true)

// min(max(x, min), max); the derivative on the border is 0
TANDEM_FUNCTION(clip, "Clip", 1, numbers, .attributes = {{"min", -infinity}, {"max", infinity}},
                .gradient = {[](Slope& g) { return g.by("ClipGrad", g.x); }})

// x Phi(x), or its approximation by tanh
TANDEM_FUNCTION(gelu, "Gelu", 1, floats, .cost = 400,
                .attributes = {{"approximate", std::string("none"), {"none", "tanh"}}},
                .gradient = {[](Slope& g) { return g.by("GeluGrad", g.x); }})

// x > 0 ? x : alpha (exp(x) - 1). Composed it would be three steps more.
TANDEM_FUNCTION(elu, "Elu", 1, floats, .cost = 400, .attributes = {{"alpha", 1.0}},
                .gradient = {[](Slope& g) {
                  return where(g.x <= 0, g.dy * g.setting(0) * exp(g.x), g.dy);
                }},
                .recurrent = true)

// clip(alpha x + beta, 0, 1); unlike Clip's, the derivative on the border is 0, as in PyTorch.
TANDEM_FUNCTION(hard_sigmoid, "HardSigmoid", 1, floats,
                .attributes = {{"alpha", 0.2}, {"beta", 0.5}},
                .gradient = {[](Slope& g) {
                  return where(g.y > 0, where(g.y < 1, g.dy * g.setting(0), 0), 0);
                }},
                .recurrent = true)

// x > alpha ? x : 0. NaN stays NaN.
TANDEM_FUNCTION(thresholded_relu, "ThresholdedRelu", 1, floats, .attributes = {{"alpha", 1.0}},
                .gradient = {[](Slope& g) { return where(g.x <= g.setting(0), 0, g.dy); }},
                .recurrent = true)

// x + bias below -lambd, x - bias above lambd, 0 between them. NaN stays NaN.
TANDEM_FUNCTION(shrink, "Shrink", 1, numbers, .attributes = {{"bias", 0.0}, {"lambd", 0.5}},
                .gradient = {[](Slope& g) {
                  const Expression above = where(g.x <= g.setting(1), 0, g.dy);
                  return where(g.x < -g.setting(1), g.dy, above);
                }})

// x / (1 + |x|). Composed, its gradient would be 1 - |y|, which cancels.
TANDEM_FUNCTION(softsign, "Softsign", 1, floats,
                .gradient = {[](Slope& g) {
                  const Expression below = abs(g.x) + 1;
                  return g.dy / below / below;
                }},
                .recurrent = true)

// Composed: their parts have code for vectors, so that a fused body takes no more than 1.2 of the
// time of a direct function where it reads from memory, and Mish less; two or three steps each.
// Their gradients have 0 times infinity where PyTorch's have it, only at infinities.

TANDEM_COMPOSED("Mish", {}, [](Composition& g) { return g.x * tanh(softplus(g.x)); })

TANDEM_COMPOSED("Swish", {{"alpha", 1.0}}, [](Composition& g) {
  return g.x * sigmoid(g.setting(0) == 1 ? g.x : g.x * g.setting(0));
})

TANDEM_COMPOSED("HardSwish", {}, [](Composition& g) {
  return g.x * hard_sigmoid(g.x, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
})

TANDEM_COMPOSED("Selu", {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}},
                [](Composition& g) {
                  return elu(g.x, {{"alpha", g.setting(0)}}) * g.setting(1);
                })

// x > 0 ? x : alpha (exp(x / alpha) - 1): Elu where alpha is 1, as it nearly always is.
TANDEM_COMPOSED("Celu", {{"alpha", 1.0}}, [](Composition& g) {
  const double alpha = g.setting(0);
  return alpha == 1 ? elu(g.x) : where(g.x > 0, g.x, elu(g.x / alpha) * alpha);
})

TANDEM_PREDICATE(is_nan, "IsNaN", 1, floats)

TANDEM_PREDICATE(is_inf, "IsInf", 1, floats, .cost = 500,
                 .attributes = {{"detect_negative", std::int64_t{1}},
                                {"detect_positive", std::int64_t{1}}})

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

// The remainder of a / b with the sign of b, or with fmod that of a; (a - y) / b is the quotient.
TANDEM_FUNCTION(mod, "Mod", 2, numbers, .cost = 2700, .precision = Precision::float32,
                .attributes = {{"fmod", std::int64_t{0}}},
                .gradient = {[](Slope& g) { return g.dy; },
                             [](Slope& g) { return -(g.dy * round((g.a - g.y) / g.b)); }})

// x > 0 ? x : slope x. Composed, its slope's gradient would be 0 times infinity at infinity.
TANDEM_FUNCTION(prelu, "PRelu", 2, numbers,
                .gradient = {[](Slope& g) { return where(g.a > 0, g.dy, g.dy * g.b); },
                             [](Slope& g) { return where(g.a > 0, 0, g.dy * g.a); }})

TANDEM_PREDICATE(equal, "Equal", 2, any)
TANDEM_PREDICATE(less, "Less", 2, numbers)
TANDEM_PREDICATE(greater, "Greater", 2, numbers)
TANDEM_PREDICATE(less_or_equal, "LessOrEqual", 2, numbers)
TANDEM_PREDICATE(greater_or_equal, "GreaterOrEqual", 2, numbers)
TANDEM_PREDICATE(logical_and, "And", 2, booleans)
TANDEM_PREDICATE(logical_or, "Or", 2, booleans)
TANDEM_PREDICATE(logical_xor, "Xor", 2, booleans)

// Bits of integers

TANDEM_FUNCTION(bitwise_not, "BitwiseNot", 1, integers, .not_differentiable = "integers")
TANDEM_FUNCTION(bitwise_and, "BitwiseAnd", 2, integers, .not_differentiable = "integers")
TANDEM_FUNCTION(bitwise_or, "BitwiseOr", 2, integers, .not_differentiable = "integers")
TANDEM_FUNCTION(bitwise_xor, "BitwiseXor", 2, integers, .not_differentiable = "integers")
TANDEM_FUNCTION(bit_shift, "BitShift", 2, integers,
                .attributes = {{"direction", std::string("LEFT"), {"LEFT", "RIGHT"}, true}},
                .not_differentiable = "integers")

// Helpers of gradients, in one pass where nothing is fused

// y <= 0 ? 0 : dy
TANDEM_FUNCTION(relu_grad, "ReluGrad", 2, floats, .with = "y")

// x > 0 ? dy : alpha dy
TANDEM_FUNCTION(leaky_relu_grad, "LeakyReluGrad", 2, floats, .attributes = {{"alpha", 0.01}},
                .with = "x")

// min < x < max ? dy : 0; the bounds themselves are flat, whether there is one or two, as PyTorch's
// clamp
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
