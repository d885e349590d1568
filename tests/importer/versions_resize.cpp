// Rows of Resize, Upsample and GridSample; expected elements are worked out by hand.
#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// In asymmetric mode every second element lies on an old one; after the last it is repeated.
void add_upsamples(Rows& rows) {
  for (DType dtype : {f32, f64, bf16, i32, u8}) {
    const HostTensor x = typed(dtype, {1, 2}, {1, 5}), scales = floats({2}, {1, 2});
    const HostTensor nearest = typed(dtype, {1, 4}, {1, 1, 5, 5});
    const HostTensor linear = typed(dtype, {1, 4}, {1, 3, 5, 5});
    for (const auto& [mode, y] : {std::pair{"nearest", nearest}, {"linear", linear}}) {
      rows.push_back({.op = "Upsample",
                      .last = 7,
                      .inputs = {x},
                      .attributes = {{"mode", mode}, {"scales", std::vector<float>{1, 2}}},
                      .outputs = {y},
                      .note = "scales as attribute"});
      rows.push_back({.op = "Upsample",
                      .first = 9,
                      .inputs = {x, scales},
                      .attributes = {{"mode", mode}},
                      .outputs = {y},
                      .note = "scales as input"});
      rows.push_back({.op = "Resize",
                      .last = 10,
                      .inputs = {x, scales},
                      .attributes = {{"mode", mode}},
                      .outputs = {y},
                      .note = "scales alone"});
    }
  }
  rows.push_back({.op = "Resize",
                  .last = 10,
                  .inputs = {floats({1, 5}, {1, 2, 3, 4, 5}), floats({2}, {1, 0.5f})},
                  .outputs = {floats({1, 2}, {1, 3})},
                  .note = "fewer"});
}

// In versions 11 and 12 an old element lies where half_pixel puts it, but without the last -0.5.
void add_resizes_of_tensorflow(Rows& rows) {
  rows.push_back(
      {.op = "Resize",
       .first = 11,
       .last = 11,
       .inputs = {floats({1, 2}, {1, 5}), floats({4}, {0, 0, 1, 1}), floats({2}, {1, 2})},
       .attributes = {{"coordinate_transformation_mode", "tf_half_pixel_for_nn"}},
       .outputs = {floats({1, 4}, {1, 5, 5, 5})},
       .note = "tf_half_pixel_for_nn"});
}

// roi may be absent from version 13 on; here it is ignored except by tf_crop_and_resize.
void add_resizes(Rows& rows) {
  const HostTensor roi = floats({4}, {0, 0, 1, 1});
  struct Form {
    const char* note;
    int first;
    HostTensor x, roi, scales, sizes;
    NodeAttributes attributes;
    HostTensor y;
  };
  const HostTensor twice = floats({2}, {1, 2});
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {1, 2}, {1, 5});
    const auto row = [&](const Numbers& y) {
      return typed(dtype, {1, static_cast<std::int64_t>(y.size())}, y);
    };
    const HostTensor three = integers({1, 3});
    const HostTensor longer = row({1, 2, 3, 6});
    const std::vector<Form> forms{
        {"half_pixel", 11, x, roi, twice, {}, {{"mode", "linear"}}, row({1, 2, 4, 5})},
        {"nearest", 11, x, roi, twice, {}, {}, row({1, 1, 5, 5})},
        {"nearest of sizes", 11, x, roi, {}, three, {}, row({1, 1, 5})},
        {"round_prefer_ceil",
         11,
         x,
         roi,
         {},
         three,
         {{"nearest_mode", "round_prefer_ceil"}},
         row({1, 5, 5})},
        {"floor",
         11,
         x,
         roi,
         {},
         three,
         {{"nearest_mode", "floor"}, {"coordinate_transformation_mode", "asymmetric"}},
         row({1, 1, 5})},
        {"ceil",
         11,
         x,
         roi,
         {},
         three,
         {{"nearest_mode", "ceil"}, {"coordinate_transformation_mode", "asymmetric"}},
         row({1, 5, 5})},
        {"align_corners",
         11,
         x,
         roi,
         {},
         three,
         {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}},
         row({1, 3, 5})},
        {"align_corners of one element",
         11,
         longer,
         roi,
         {},
         integers({1, 1}),
         {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}},
         row({1})},
        {"pytorch_half_pixel of one element",
         11,
         longer,
         roi,
         {},
         integers({1, 1}),
         {{"mode", "linear"}, {"coordinate_transformation_mode", "pytorch_half_pixel"}},
         row({1})},
        // w(1.25), w(0.75) + w(1.75) of Keys' cubic with a = -0.75
        {"cubic",
         11,
         x,
         roi,
         twice,
         {},
         {{"mode", "cubic"}},
         row({0.578125, 1.90625, 4.09375, 5.421875})},
        // Weights w(0.25), w(1.25), then w(0.25), w(0.75) of the two elements, made to sum up to 1
        {"exclude_outside",
         11,
         x,
         roi,
         twice,
         {},
         {{"mode", "cubic"}, {"exclude_outside", 1}},
         row({0.3515625 / 0.7734375, 2.1875 / 1.140625, 6 - 2.1875 / 1.140625,
              6 - 0.3515625 / 0.7734375})},
        // Coordinates 0, 2, 4 of three elements
        {"tf_crop_and_resize",
         11,
         row({1, 2, 3}),
         floats({4}, {0, 0, 1, 2}),
         {},
         three,
         {{"mode", "linear"},
          {"coordinate_transformation_mode", "tf_crop_and_resize"},
          {"extrapolation_value", 9.0}},
         row({1, 3, 9})},
        {"tf_crop_and_resize, nearest",
         11,
         row({1, 2, 3}),
         floats({4}, {0, 0.5f, 1, 0.5f}),
         {},
         integers({1, 2}),
         {{"coordinate_transformation_mode", "tf_crop_and_resize"}},
         row({2, 2})},
        // A filter of twice the width: 0.25, 0.75, 0.75, 0.25 for the four elements around, over 2
        {"antialias",
         18,
         longer,
         {},
         {},
         integers({1, 2}),
         {{"mode", "linear"}, {"antialias", 1}},
         row({1.625, 4.375})},
        {"axes", 18, x, {}, {}, integers({4}), {{"axes", Axes{-1}}}, row({1, 1, 5, 5})},
        {"not_smaller",
         18,
         x,
         {},
         {},
         integers({1, 4}),
         {{"keep_aspect_ratio_policy", "not_smaller"}},
         typed(dtype, {2, 4}, {1, 1, 5, 5, 1, 1, 5, 5})},
        {"not_larger",
         18,
         x,
         {},
         {},
         integers({1, 4}),
         {{"keep_aspect_ratio_policy", "not_larger"}},
         x},
        // Coordinates 0, 2/3, 4/3, 2
        {"half_pixel_symmetric",
         19,
         row({1, 2, 4}),
         {},
         floats({2}, {1, 1.5f}),
         {},
         {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel_symmetric"}},
         row({1, 5.0 / 3, 8.0 / 3, 4})},
    };
    for (const Form& form : forms) {
      VersionRow made{.op = "Resize", .first = form.first, .note = form.note};
      made.inputs = {form.x, form.roi, form.scales};
      if (form.sizes.data() != nullptr) made.inputs.push_back(form.sizes);
      // Before version 13 the place of scales that are not given is empty.
      if (form.first < 13 && form.scales.data() == nullptr) made.first = 13;
      made.attributes = form.attributes;
      made.outputs = {form.y};
      rows.push_back(std::move(made));
    }
  }
  for (DType dtype : {i32, u8}) {
    const HostTensor x = typed(dtype, {1, 2}, {1, 6});
    rows.push_back({.op = "Resize",
                    .first = 11,
                    .inputs = {x, roi, twice},
                    .outputs = {typed(dtype, {1, 4}, {1, 1, 6, 6})},
                    .note = "integers, nearest"});
    rows.push_back({.op = "Resize",
                    .first = 11,
                    .inputs = {x, roi, twice},
                    .attributes = {{"mode", "linear"}},
                    .outputs = {typed(dtype, {1, 4}, {1, 2, 4, 6})},
                    .note = "integers, linear, cut off"});
  }
  const auto refused = [&](const char* note, NodeAttributes attributes, const char* message) {
    rows.push_back({.op = "Resize",
                    .first = 11,
                    .inputs = {floats({1, 2}, {1, 5}), roi, twice},
                    .attributes = std::move(attributes),
                    .note = note,
                    .refused = message});
  };
  refused("mode", {{"mode", "area"}}, "mode");
  refused("coordinates", {{"coordinate_transformation_mode", "middle"}}, "half_pixel_symmetric");
  refused("rounding", {{"nearest_mode", "up"}}, "nearest_mode");
  rows.push_back({.op = "Resize",
                  .first = 11,
                  .inputs = {floats({1, 2}, {1, 5}), roi, floats({1}, {2})},
                  .note = "too few scales",
                  .refused = "scales"});
}

// x = {1, 3; 5, 9}; the grid names the column first. Modes were called otherwise before version 20,
// which has lines and volumes too.
void add_grid_samples(Rows& rows) {
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {1, 1, 2, 2}, {1, 3, 5, 9});
    // The middle; the middle of the upper row; beyond the right end.
    const HostTensor grid = typed(dtype, {1, 1, 3, 2}, {0, 0, 0, -0.5, 1.5, 0.5});
    const Numbers zeros{4.5, 2, 0}, border{4.5, 2, 9};
    for (const auto& [last, linear] : {std::pair{16, "bilinear"}, {newest, "linear"}}) {
      const int first = last == 16 ? 16 : 20;
      rows.push_back({.op = "GridSample",
                      .first = first,
                      .last = last,
                      .inputs = {x, grid},
                      .attributes = {{"mode", linear}},
                      .outputs = {typed(dtype, {1, 1, 1, 3}, zeros)},
                      .note = linear});
      rows.push_back({.op = "GridSample",
                      .first = first,
                      .last = last,
                      .inputs = {x, grid},
                      .attributes = {{"mode", linear}, {"padding_mode", "border"}},
                      .outputs = {typed(dtype, {1, 1, 1, 3}, border)},
                      .note = "border"});
    }
    rows.push_back(
        {.op = "GridSample",
         .inputs = {x, typed(dtype, {1, 1, 2, 2}, {-0.9, 0.9, 3, -1})},
         .attributes = {{"mode", "nearest"}, {"padding_mode", "reflection"}, {"align_corners", 1}},
         .outputs = {typed(dtype, {1, 1, 1, 2}, {5, 1})},
         .note = "nearest, mirrored"});
    rows.push_back({.op = "GridSample",
                    .first = 20,
                    .inputs = {typed(dtype, {1, 1, 2}, {1, 3}), typed(dtype, {1, 1, 1}, {0.25})},
                    .outputs = {typed(dtype, {1, 1, 1}, {2.5})},
                    .note = "a line"});
  }
}

}  // namespace

void add_resize_rows(std::vector<VersionRow>& rows) {
  add_upsamples(rows);
  add_resizes(rows);
  add_resizes_of_tensorflow(rows);
  add_grid_samples(rows);
}

}  // namespace tandem::testing
