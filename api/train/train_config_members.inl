// The keys of the members of tandem/train_config.h, and the words of its enumerations. `make docs`
// writes this file.
// clang-format off
template <> inline constexpr std::string_view words_of_enum<ModelBatchNorm> = "train|inference|file";
template <class V> void each_member(Of<ModelBatchNormSettings>, [[maybe_unused]] V v) {
  v("at", &ModelBatchNormSettings::at);
  v("mode", &ModelBatchNormSettings::mode);
}
template <> inline constexpr std::string_view words_of_enum<ModelRandom> = "known|train|always";
template <class V> void each_member(Of<ModelRandomSettings>, [[maybe_unused]] V v) {
  v("at", &ModelRandomSettings::at);
  v("mode", &ModelRandomSettings::mode);
}
template <class V> void each_member(Of<ModelSettings>, [[maybe_unused]] V v) {
  v("file", &ModelSettings::file);
  v("bind", &ModelSettings::bind);
  v("batch_norm", &ModelSettings::batch_norm);
  v("random", &ModelSettings::random);
  v("sync_batch_norm", &ModelSettings::sync_batch_norm);
}
template <> inline constexpr std::string_view words_of_enum<RunDevice> = "auto|cpu|gpu";
template <> inline constexpr std::string_view words_of_enum<RunBatchSize> = "auto";
template <class V> void each_member(Of<FreezeSettings>, [[maybe_unused]] V v) {
  v("at", &FreezeSettings::at);
  v("until", &FreezeSettings::until);
  v("from", &FreezeSettings::from);
}
template <> inline constexpr std::string_view words_of_enum<LoadMissing> = "error|keep";
template <> inline constexpr std::string_view words_of_enum<LoadUnexpected> = "error|ignore";
template <> inline constexpr std::string_view words_of_enum<LoadOtherShape> = "error|keep";
template <class V> void each_member(Of<LoadSettings>, [[maybe_unused]] V v) {
  v("from", &LoadSettings::from);
  v("at", &LoadSettings::at);
  v("strip", &LoadSettings::strip);
  v("rename", &LoadSettings::rename);
  v("add", &LoadSettings::add);
  v("transpose", &LoadSettings::transpose);
  v("missing", &LoadSettings::missing);
  v("unexpected", &LoadSettings::unexpected);
  v("other_shape", &LoadSettings::other_shape);
}
template <> inline constexpr std::string_view words_of_enum<InitKind> = "zeros|ones|constant|normal|uniform|kaiming_uniform|kaiming_normal|xavier_uniform|xavier_normal";
template <class V> void each_member(Of<InitSettings>, [[maybe_unused]] V v) {
  v("at", &InitSettings::at);
  v("kind", &InitSettings::kind);
  v("value", &InitSettings::value);
  v("mean", &InitSettings::mean);
  v("std", &InitSettings::std);
  v("low", &InitSettings::low);
  v("high", &InitSettings::high);
}
template <class V> void each_member(Of<HeadSettings>, [[maybe_unused]] V v) {
  v("classes", &HeadSettings::classes);
  v("at", &HeadSettings::at);
}
template <class V> void each_member(Of<LoraSettings>, [[maybe_unused]] V v) {
  v("at", &LoraSettings::at);
  v("rank", &LoraSettings::rank);
  v("alpha", &LoraSettings::alpha);
  v("dropout", &LoraSettings::dropout);
  v("rslora", &LoraSettings::rslora);
  v("dora", &LoraSettings::dora);
}
template <class V> void each_member(Of<ShapeSettings>, [[maybe_unused]] V v) {
  v("at", &ShapeSettings::at);
  v("rows", &ShapeSettings::rows);
}
template <> inline constexpr std::string_view words_of_enum<StorageKind> = "float32|split_bfloat16|float16|bfloat16|int8|int4|nf4";
template <class V> void each_member(Of<StorageSettings>, [[maybe_unused]] V v) {
  v("at", &StorageSettings::at);
  v("kind", &StorageSettings::kind);
  v("block", &StorageSettings::block);
}
template <class V> void each_member(Of<FixedRowSettings>, [[maybe_unused]] V v) {
  v("at", &FixedRowSettings::at);
  v("rows", &FixedRowSettings::rows);
}
template <class V> void each_member(Of<ParametersSettings>, [[maybe_unused]] V v) {
  v("freeze", &ParametersSettings::freeze);
  v("load", &ParametersSettings::load);
  v("init", &ParametersSettings::init);
  v("head", &ParametersSettings::head);
  v("lora", &ParametersSettings::lora);
  v("train", &ParametersSettings::train);
  v("shape", &ParametersSettings::shape);
  v("storage", &ParametersSettings::storage);
  v("fixed_rows", &ParametersSettings::fixed_rows);
}
template <> inline constexpr std::string_view word_of_kind<SoftmaxCrossEntropyLoss> = "softmax_cross_entropy";
template <class V> void each_member(Of<SoftmaxCrossEntropyLoss>, [[maybe_unused]] V v) {
  v("logits", &SoftmaxCrossEntropyLoss::logits);
  v("labels", &SoftmaxCrossEntropyLoss::labels);
  v("sample_weights", &SoftmaxCrossEntropyLoss::sample_weights);
  v("ignore_index", &SoftmaxCrossEntropyLoss::ignore_index);
  v("class_weights", &SoftmaxCrossEntropyLoss::class_weights);
  v("label_smoothing", &SoftmaxCrossEntropyLoss::label_smoothing);
}
template <> inline constexpr std::string_view word_of_kind<MseLoss> = "mse";
template <class V> void each_member(Of<MseLoss>, [[maybe_unused]] V v) {
  v("predictions", &MseLoss::predictions);
  v("targets", &MseLoss::targets);
  v("sample_weights", &MseLoss::sample_weights);
}
template <> inline constexpr std::string_view word_of_kind<BinaryCrossEntropyLoss> = "binary_cross_entropy";
template <class V> void each_member(Of<BinaryCrossEntropyLoss>, [[maybe_unused]] V v) {
  v("logits", &BinaryCrossEntropyLoss::logits);
  v("labels", &BinaryCrossEntropyLoss::labels);
  v("sample_weights", &BinaryCrossEntropyLoss::sample_weights);
  v("pos_weight", &BinaryCrossEntropyLoss::pos_weight);
}
template <> inline constexpr std::string_view word_of_kind<SumOfSquaresLoss> = "sum_of_squares";
template <class V> void each_member(Of<SumOfSquaresLoss>, [[maybe_unused]] V v) {
  v("of", &SumOfSquaresLoss::of);
}
template <> inline constexpr std::string_view word_of_kind<NllLoss> = "nll";
template <class V> void each_member(Of<NllLoss>, [[maybe_unused]] V v) {
  v("labels", &NllLoss::labels);
  v("log_probabilities", &NllLoss::log_probabilities);
  v("sample_weights", &NllLoss::sample_weights);
  v("ignore_index", &NllLoss::ignore_index);
  v("class_weights", &NllLoss::class_weights);
}
template <> inline constexpr std::string_view word_of_kind<SoftmaxFocalLoss> = "softmax_focal";
template <class V> void each_member(Of<SoftmaxFocalLoss>, [[maybe_unused]] V v) {
  v("logits", &SoftmaxFocalLoss::logits);
  v("labels", &SoftmaxFocalLoss::labels);
  v("sample_weights", &SoftmaxFocalLoss::sample_weights);
  v("ignore_index", &SoftmaxFocalLoss::ignore_index);
  v("class_weights", &SoftmaxFocalLoss::class_weights);
  v("gamma", &SoftmaxFocalLoss::gamma);
}
template <> inline constexpr std::string_view word_of_kind<SigmoidFocalLoss> = "sigmoid_focal";
template <class V> void each_member(Of<SigmoidFocalLoss>, [[maybe_unused]] V v) {
  v("logits", &SigmoidFocalLoss::logits);
  v("labels", &SigmoidFocalLoss::labels);
  v("sample_weights", &SigmoidFocalLoss::sample_weights);
  v("gamma", &SigmoidFocalLoss::gamma);
  v("alpha", &SigmoidFocalLoss::alpha);
}
template <> inline constexpr std::string_view word_of_kind<HingeLoss> = "hinge";
template <class V> void each_member(Of<HingeLoss>, [[maybe_unused]] V v) {
  v("labels", &HingeLoss::labels);
  v("predictions", &HingeLoss::predictions);
  v("sample_weights", &HingeLoss::sample_weights);
  v("margin", &HingeLoss::margin);
}
template <> inline constexpr std::string_view word_of_kind<MultiMarginLoss> = "multi_margin";
template <class V> void each_member(Of<MultiMarginLoss>, [[maybe_unused]] V v) {
  v("labels", &MultiMarginLoss::labels);
  v("predictions", &MultiMarginLoss::predictions);
  v("sample_weights", &MultiMarginLoss::sample_weights);
  v("margin", &MultiMarginLoss::margin);
  v("p", &MultiMarginLoss::p);
}
template <> inline constexpr std::string_view word_of_kind<MaeLoss> = "mae";
template <class V> void each_member(Of<MaeLoss>, [[maybe_unused]] V v) {
  v("predictions", &MaeLoss::predictions);
  v("targets", &MaeLoss::targets);
  v("sample_weights", &MaeLoss::sample_weights);
}
template <> inline constexpr std::string_view word_of_kind<HuberLoss> = "huber";
template <class V> void each_member(Of<HuberLoss>, [[maybe_unused]] V v) {
  v("predictions", &HuberLoss::predictions);
  v("targets", &HuberLoss::targets);
  v("sample_weights", &HuberLoss::sample_weights);
  v("delta", &HuberLoss::delta);
}
template <> inline constexpr std::string_view word_of_kind<SmoothL1Loss> = "smooth_l1";
template <class V> void each_member(Of<SmoothL1Loss>, [[maybe_unused]] V v) {
  v("predictions", &SmoothL1Loss::predictions);
  v("targets", &SmoothL1Loss::targets);
  v("sample_weights", &SmoothL1Loss::sample_weights);
  v("beta", &SmoothL1Loss::beta);
}
template <> inline constexpr std::string_view word_of_kind<KlDivLoss> = "kl_div";
template <class V> void each_member(Of<KlDivLoss>, [[maybe_unused]] V v) {
  v("targets", &KlDivLoss::targets);
  v("log_probabilities", &KlDivLoss::log_probabilities);
  v("sample_weights", &KlDivLoss::sample_weights);
  v("log_target", &KlDivLoss::log_target);
}
template <> inline constexpr std::string_view word_of_kind<GaussianKlLoss> = "gaussian_kl";
template <class V> void each_member(Of<GaussianKlLoss>, [[maybe_unused]] V v) {
  v("mu", &GaussianKlLoss::mu);
  v("log_var", &GaussianKlLoss::log_var);
  v("sample_weights", &GaussianKlLoss::sample_weights);
}
template <> inline constexpr std::string_view word_of_kind<CosineEmbeddingLoss> = "cosine_embedding";
template <class V> void each_member(Of<CosineEmbeddingLoss>, [[maybe_unused]] V v) {
  v("labels", &CosineEmbeddingLoss::labels);
  v("input1", &CosineEmbeddingLoss::input1);
  v("input2", &CosineEmbeddingLoss::input2);
  v("sample_weights", &CosineEmbeddingLoss::sample_weights);
  v("margin", &CosineEmbeddingLoss::margin);
}
template <> inline constexpr std::string_view word_of_kind<TripletMarginLoss> = "triplet_margin";
template <class V> void each_member(Of<TripletMarginLoss>, [[maybe_unused]] V v) {
  v("anchor", &TripletMarginLoss::anchor);
  v("positive", &TripletMarginLoss::positive);
  v("negative", &TripletMarginLoss::negative);
  v("sample_weights", &TripletMarginLoss::sample_weights);
  v("margin", &TripletMarginLoss::margin);
  v("p", &TripletMarginLoss::p);
  v("eps", &TripletMarginLoss::eps);
  v("swap", &TripletMarginLoss::swap);
}
template <> inline constexpr std::string_view words_of_enum<LossTermSimilarity> = "cosine|dot";
template <> inline constexpr std::string_view word_of_kind<InfoNceLoss> = "info_nce";
template <class V> void each_member(Of<InfoNceLoss>, [[maybe_unused]] V v) {
  v("anchor", &InfoNceLoss::anchor);
  v("positive", &InfoNceLoss::positive);
  v("sample_weights", &InfoNceLoss::sample_weights);
  v("temperature", &InfoNceLoss::temperature);
  v("similarity", &InfoNceLoss::similarity);
  v("symmetric", &InfoNceLoss::symmetric);
}
template <> inline constexpr std::string_view words_of_enum<LossTermActivation> = "sigmoid|softmax";
template <> inline constexpr std::string_view word_of_kind<DiceLoss> = "dice";
template <class V> void each_member(Of<DiceLoss>, [[maybe_unused]] V v) {
  v("logits", &DiceLoss::logits);
  v("labels", &DiceLoss::labels);
  v("sample_weights", &DiceLoss::sample_weights);
  v("activation", &DiceLoss::activation);
  v("squared_pred", &DiceLoss::squared_pred);
  v("smooth_nr", &DiceLoss::smooth_nr);
  v("smooth_dr", &DiceLoss::smooth_dr);
}
template <> inline constexpr std::string_view word_of_kind<CtcLoss> = "ctc";
template <class V> void each_member(Of<CtcLoss>, [[maybe_unused]] V v) {
  v("logits", &CtcLoss::logits);
  v("labels", &CtcLoss::labels);
  v("input_lengths", &CtcLoss::input_lengths);
  v("target_lengths", &CtcLoss::target_lengths);
  v("sample_weights", &CtcLoss::sample_weights);
  v("ignore_index", &CtcLoss::ignore_index);
  v("blank", &CtcLoss::blank);
  v("time_first", &CtcLoss::time_first);
  v("zero_infinity", &CtcLoss::zero_infinity);
}
template <> inline constexpr std::string_view word_of_kind<DistillationLoss> = "distillation";
template <class V> void each_member(Of<DistillationLoss>, [[maybe_unused]] V v) {
  v("logits", &DistillationLoss::logits);
  v("teacher_logits", &DistillationLoss::teacher_logits);
  v("sample_weights", &DistillationLoss::sample_weights);
  v("temperature", &DistillationLoss::temperature);
  v("axis", &DistillationLoss::axis);
}
template <> inline constexpr std::string_view words_of_enum<LossTermReduction> = "mean|sum|batchmean";
template <class V> void each_member(Of<LossTermSettings>, [[maybe_unused]] V v) {
  v("name", &LossTermSettings::name);
  v("kind", &LossTermSettings::kind);
  v("weight", &LossTermSettings::weight);
  v("reduction", &LossTermSettings::reduction);
}
template <class V> void each_member(Of<LossSettings>, [[maybe_unused]] V v) {
  v("output", &LossSettings::output);
  v("terms", &LossSettings::terms);
}
template <class V> void each_member(Of<DistillationSettings>, [[maybe_unused]] V v) {
  v("teacher", &DistillationSettings::teacher);
  v("weights", &DistillationSettings::weights);
  v("temperature", &DistillationSettings::temperature);
  v("weight", &DistillationSettings::weight);
  v("at", &DistillationSettings::at);
  v("inputs", &DistillationSettings::inputs);
}
template <> inline constexpr std::string_view word_of_kind<Sgd> = "sgd";
template <class V> void each_member(Of<Sgd>, [[maybe_unused]] V v) {
  v("lr", &Sgd::lr);
  v("weight_decay", &Sgd::weight_decay);
  v("momentum", &Sgd::momentum);
  v("dampening", &Sgd::dampening);
  v("nesterov", &Sgd::nesterov);
}
template <> inline constexpr std::string_view words_of_enum<OptimizerEpsilonForm> = "pytorch|onnx";
template <> inline constexpr std::string_view word_of_kind<Adam> = "adam";
template <class V> void each_member(Of<Adam>, [[maybe_unused]] V v) {
  v("lr", &Adam::lr);
  v("weight_decay", &Adam::weight_decay);
  v("betas", &Adam::betas);
  v("beta1", &Adam::beta1);
  v("beta2", &Adam::beta2);
  v("eps", &Adam::eps);
  v("epsilon", &Adam::epsilon);
  v("epsilon_form", &Adam::epsilon_form);
  v("bias_correction", &Adam::bias_correction);
}
template <> inline constexpr std::string_view word_of_kind<AdamW> = "adamw";
template <class V> void each_member(Of<AdamW>, [[maybe_unused]] V v) {
  v("lr", &AdamW::lr);
  v("weight_decay", &AdamW::weight_decay);
  v("betas", &AdamW::betas);
  v("beta1", &AdamW::beta1);
  v("beta2", &AdamW::beta2);
  v("eps", &AdamW::eps);
  v("epsilon", &AdamW::epsilon);
  v("epsilon_form", &AdamW::epsilon_form);
  v("bias_correction", &AdamW::bias_correction);
}
template <> inline constexpr std::string_view word_of_kind<LazyAdam> = "lazy_adam";
template <class V> void each_member(Of<LazyAdam>, [[maybe_unused]] V v) {
  v("lr", &LazyAdam::lr);
  v("weight_decay", &LazyAdam::weight_decay);
  v("betas", &LazyAdam::betas);
  v("beta1", &LazyAdam::beta1);
  v("beta2", &LazyAdam::beta2);
  v("eps", &LazyAdam::eps);
  v("epsilon", &LazyAdam::epsilon);
  v("epsilon_form", &LazyAdam::epsilon_form);
  v("bias_correction", &LazyAdam::bias_correction);
}
template <> inline constexpr std::string_view word_of_kind<Adagrad> = "adagrad";
template <class V> void each_member(Of<Adagrad>, [[maybe_unused]] V v) {
  v("lr", &Adagrad::lr);
  v("weight_decay", &Adagrad::weight_decay);
  v("eps", &Adagrad::eps);
  v("epsilon", &Adagrad::epsilon);
  v("lr_decay", &Adagrad::lr_decay);
  v("initial_accumulator", &Adagrad::initial_accumulator);
}
template <> inline constexpr std::string_view word_of_kind<RowwiseAdagrad> = "rowwise_adagrad";
template <class V> void each_member(Of<RowwiseAdagrad>, [[maybe_unused]] V v) {
  v("lr", &RowwiseAdagrad::lr);
  v("weight_decay", &RowwiseAdagrad::weight_decay);
  v("eps", &RowwiseAdagrad::eps);
  v("epsilon", &RowwiseAdagrad::epsilon);
  v("lr_decay", &RowwiseAdagrad::lr_decay);
  v("initial_accumulator", &RowwiseAdagrad::initial_accumulator);
}
template <> inline constexpr std::string_view words_of_enum<OptimizerDialect> = "mcmahan|tensorflow|mindspore";
template <> inline constexpr std::string_view word_of_kind<Ftrl> = "ftrl";
template <class V> void each_member(Of<Ftrl>, [[maybe_unused]] V v) {
  v("lr", &Ftrl::lr);
  v("initial_accumulator", &Ftrl::initial_accumulator);
  v("l1", &Ftrl::l1);
  v("l2", &Ftrl::l2);
  v("beta", &Ftrl::beta);
  v("l2_shrinkage", &Ftrl::l2_shrinkage);
  v("lr_power", &Ftrl::lr_power);
  v("dialect", &Ftrl::dialect);
}
template <> inline constexpr std::string_view word_of_kind<GroupFtrl> = "group_ftrl";
template <class V> void each_member(Of<GroupFtrl>, [[maybe_unused]] V v) {
  v("lr", &GroupFtrl::lr);
  v("initial_accumulator", &GroupFtrl::initial_accumulator);
  v("l1", &GroupFtrl::l1);
  v("l2", &GroupFtrl::l2);
  v("beta", &GroupFtrl::beta);
  v("l2_shrinkage", &GroupFtrl::l2_shrinkage);
  v("lr_power", &GroupFtrl::lr_power);
  v("dialect", &GroupFtrl::dialect);
  v("l21", &GroupFtrl::l21);
}
template <> inline constexpr std::string_view word_of_kind<Lamb> = "lamb";
template <class V> void each_member(Of<Lamb>, [[maybe_unused]] V v) {
  v("lr", &Lamb::lr);
  v("weight_decay", &Lamb::weight_decay);
  v("betas", &Lamb::betas);
  v("beta1", &Lamb::beta1);
  v("beta2", &Lamb::beta2);
  v("eps", &Lamb::eps);
  v("epsilon", &Lamb::epsilon);
  v("bias_correction", &Lamb::bias_correction);
  v("always_adapt", &Lamb::always_adapt);
  v("trust_clip", &Lamb::trust_clip);
}
template <> inline constexpr std::string_view word_of_kind<Momentum> = "momentum";
template <class V> void each_member(Of<Momentum>, [[maybe_unused]] V v) {
  v("lr", &Momentum::lr);
  v("weight_decay", &Momentum::weight_decay);
  v("momentum", &Momentum::momentum);
  v("nesterov", &Momentum::nesterov);
  v("beta", &Momentum::beta);
}
template <> inline constexpr std::string_view word_of_kind<RmsProp> = "rmsprop";
template <class V> void each_member(Of<RmsProp>, [[maybe_unused]] V v) {
  v("lr", &RmsProp::lr);
  v("weight_decay", &RmsProp::weight_decay);
  v("momentum", &RmsProp::momentum);
  v("eps", &RmsProp::eps);
  v("epsilon", &RmsProp::epsilon);
  v("alpha", &RmsProp::alpha);
  v("centered", &RmsProp::centered);
}
template <> inline constexpr std::string_view word_of_kind<Adadelta> = "adadelta";
template <class V> void each_member(Of<Adadelta>, [[maybe_unused]] V v) {
  v("lr", &Adadelta::lr);
  v("weight_decay", &Adadelta::weight_decay);
  v("eps", &Adadelta::eps);
  v("epsilon", &Adadelta::epsilon);
  v("rho", &Adadelta::rho);
}
template <> inline constexpr std::string_view word_of_kind<Adamax> = "adamax";
template <class V> void each_member(Of<Adamax>, [[maybe_unused]] V v) {
  v("lr", &Adamax::lr);
  v("weight_decay", &Adamax::weight_decay);
  v("betas", &Adamax::betas);
  v("beta1", &Adamax::beta1);
  v("beta2", &Adamax::beta2);
  v("eps", &Adamax::eps);
  v("epsilon", &Adamax::epsilon);
}
template <> inline constexpr std::string_view word_of_kind<NAdam> = "nadam";
template <class V> void each_member(Of<NAdam>, [[maybe_unused]] V v) {
  v("lr", &NAdam::lr);
  v("weight_decay", &NAdam::weight_decay);
  v("betas", &NAdam::betas);
  v("beta1", &NAdam::beta1);
  v("beta2", &NAdam::beta2);
  v("eps", &NAdam::eps);
  v("epsilon", &NAdam::epsilon);
  v("momentum_decay", &NAdam::momentum_decay);
  v("decoupled_weight_decay", &NAdam::decoupled_weight_decay);
}
template <> inline constexpr std::string_view word_of_kind<RAdam> = "radam";
template <class V> void each_member(Of<RAdam>, [[maybe_unused]] V v) {
  v("lr", &RAdam::lr);
  v("weight_decay", &RAdam::weight_decay);
  v("betas", &RAdam::betas);
  v("beta1", &RAdam::beta1);
  v("beta2", &RAdam::beta2);
  v("eps", &RAdam::eps);
  v("epsilon", &RAdam::epsilon);
  v("decoupled_weight_decay", &RAdam::decoupled_weight_decay);
}
template <> inline constexpr std::string_view word_of_kind<Lion> = "lion";
template <class V> void each_member(Of<Lion>, [[maybe_unused]] V v) {
  v("lr", &Lion::lr);
  v("weight_decay", &Lion::weight_decay);
  v("betas", &Lion::betas);
  v("beta1", &Lion::beta1);
  v("beta2", &Lion::beta2);
}
template <> inline constexpr std::string_view word_of_kind<Adafactor> = "adafactor";
template <class V> void each_member(Of<Adafactor>, [[maybe_unused]] V v) {
  v("lr", &Adafactor::lr);
  v("weight_decay", &Adafactor::weight_decay);
  v("beta2_decay", &Adafactor::beta2_decay);
  v("eps1", &Adafactor::eps1);
  v("eps2", &Adafactor::eps2);
  v("d", &Adafactor::d);
}
template <> inline constexpr std::string_view words_of_enum<OptimizerAdjustLrFn> = "original|match_rms_adamw|spectral_unclamped";
template <> inline constexpr std::string_view word_of_kind<Muon> = "muon";
template <class V> void each_member(Of<Muon>, [[maybe_unused]] V v) {
  v("lr", &Muon::lr);
  v("weight_decay", &Muon::weight_decay);
  v("momentum", &Muon::momentum);
  v("nesterov", &Muon::nesterov);
  v("eps", &Muon::eps);
  v("epsilon", &Muon::epsilon);
  v("ns_coefficients", &Muon::ns_coefficients);
  v("ns_a", &Muon::ns_a);
  v("ns_b", &Muon::ns_b);
  v("ns_c", &Muon::ns_c);
  v("ns_steps", &Muon::ns_steps);
  v("adjust_lr_fn", &Muon::adjust_lr_fn);
  v("flatten", &Muon::flatten);
}
template <> inline constexpr std::string_view word_of_kind<ScheduleFreeAdamW> = "schedule_free_adamw";
template <class V> void each_member(Of<ScheduleFreeAdamW>, [[maybe_unused]] V v) {
  v("lr", &ScheduleFreeAdamW::lr);
  v("weight_decay", &ScheduleFreeAdamW::weight_decay);
  v("betas", &ScheduleFreeAdamW::betas);
  v("beta1", &ScheduleFreeAdamW::beta1);
  v("beta2", &ScheduleFreeAdamW::beta2);
  v("eps", &ScheduleFreeAdamW::eps);
  v("epsilon", &ScheduleFreeAdamW::epsilon);
  v("r", &ScheduleFreeAdamW::r);
  v("weight_lr_power", &ScheduleFreeAdamW::weight_lr_power);
}
template <> inline constexpr std::string_view word_of_kind<Adam8bit> = "adam8bit";
template <class V> void each_member(Of<Adam8bit>, [[maybe_unused]] V v) {
  v("lr", &Adam8bit::lr);
  v("weight_decay", &Adam8bit::weight_decay);
  v("betas", &Adam8bit::betas);
  v("beta1", &Adam8bit::beta1);
  v("beta2", &Adam8bit::beta2);
  v("eps", &Adam8bit::eps);
  v("epsilon", &Adam8bit::epsilon);
  v("epsilon_form", &Adam8bit::epsilon_form);
  v("bias_correction", &Adam8bit::bias_correction);
}
template <> inline constexpr std::string_view word_of_kind<AdamW8bit> = "adamw8bit";
template <class V> void each_member(Of<AdamW8bit>, [[maybe_unused]] V v) {
  v("lr", &AdamW8bit::lr);
  v("weight_decay", &AdamW8bit::weight_decay);
  v("betas", &AdamW8bit::betas);
  v("beta1", &AdamW8bit::beta1);
  v("beta2", &AdamW8bit::beta2);
  v("eps", &AdamW8bit::eps);
  v("epsilon", &AdamW8bit::epsilon);
  v("epsilon_form", &AdamW8bit::epsilon_form);
  v("bias_correction", &AdamW8bit::bias_correction);
}
template <> inline constexpr std::string_view word_of_kind<ConstantSchedule> = "constant";
template <class V> void each_member(Of<ConstantSchedule>, [[maybe_unused]] V v) {}
template <> inline constexpr std::string_view word_of_kind<CosineSchedule> = "cosine";
template <class V> void each_member(Of<CosineSchedule>, [[maybe_unused]] V v) {
  v("final", &CosineSchedule::final);
}
template <> inline constexpr std::string_view word_of_kind<StepSchedule> = "step";
template <class V> void each_member(Of<StepSchedule>, [[maybe_unused]] V v) {
  v("step_size", &StepSchedule::step_size);
  v("gamma", &StepSchedule::gamma);
}
template <> inline constexpr std::string_view word_of_kind<LinearSchedule> = "linear";
template <class V> void each_member(Of<LinearSchedule>, [[maybe_unused]] V v) {
  v("final", &LinearSchedule::final);
}
template <> inline constexpr std::string_view word_of_kind<MultistepSchedule> = "multistep";
template <class V> void each_member(Of<MultistepSchedule>, [[maybe_unused]] V v) {
  v("gamma", &MultistepSchedule::gamma);
  v("milestones", &MultistepSchedule::milestones);
}
template <> inline constexpr std::string_view word_of_kind<ExponentialSchedule> = "exponential";
template <class V> void each_member(Of<ExponentialSchedule>, [[maybe_unused]] V v) {
  v("gamma", &ExponentialSchedule::gamma);
  v("period", &ExponentialSchedule::period);
}
template <> inline constexpr std::string_view word_of_kind<PolynomialSchedule> = "polynomial";
template <class V> void each_member(Of<PolynomialSchedule>, [[maybe_unused]] V v) {
  v("final", &PolynomialSchedule::final);
  v("power", &PolynomialSchedule::power);
}
template <> inline constexpr std::string_view word_of_kind<InverseSquareRootSchedule> = "inverse_square_root";
template <class V> void each_member(Of<InverseSquareRootSchedule>, [[maybe_unused]] V v) {
  v("timescale", &InverseSquareRootSchedule::timescale);
}
template <> inline constexpr std::string_view word_of_kind<CosineRestartsSchedule> = "cosine_restarts";
template <class V> void each_member(Of<CosineRestartsSchedule>, [[maybe_unused]] V v) {
  v("final", &CosineRestartsSchedule::final);
  v("period", &CosineRestartsSchedule::period);
  v("multiplier", &CosineRestartsSchedule::multiplier);
}
template <> inline constexpr std::string_view words_of_enum<ScheduleAnneal> = "cos|linear";
template <> inline constexpr std::string_view word_of_kind<OneCycleSchedule> = "one_cycle";
template <class V> void each_member(Of<OneCycleSchedule>, [[maybe_unused]] V v) {
  v("pct_start", &OneCycleSchedule::pct_start);
  v("div_factor", &OneCycleSchedule::div_factor);
  v("final_div_factor", &OneCycleSchedule::final_div_factor);
  v("anneal", &OneCycleSchedule::anneal);
  v("three_phase", &OneCycleSchedule::three_phase);
}
template <> inline constexpr std::string_view words_of_enum<ScheduleThresholdMode> = "rel|abs";
template <> inline constexpr std::string_view word_of_kind<PlateauSchedule> = "plateau";
template <class V> void each_member(Of<PlateauSchedule>, [[maybe_unused]] V v) {
  v("metric", &PlateauSchedule::metric);
  v("factor", &PlateauSchedule::factor);
  v("patience", &PlateauSchedule::patience);
  v("threshold", &PlateauSchedule::threshold);
  v("threshold_mode", &PlateauSchedule::threshold_mode);
  v("cooldown", &PlateauSchedule::cooldown);
  v("min_lr", &PlateauSchedule::min_lr);
  v("eps", &PlateauSchedule::eps);
}
template <class V> void each_member(Of<SchedulePartSettings>, [[maybe_unused]] V v) {
  v("kind", &SchedulePartSettings::kind);
  v("length", &SchedulePartSettings::length);
  v("warmup", &SchedulePartSettings::warmup);
}
template <class V> void each_member(Of<ScheduleSettings>, [[maybe_unused]] V v) {
  v("kind", &ScheduleSettings::kind);
  v("warmup", &ScheduleSettings::warmup);
  v("parts", &ScheduleSettings::parts);
}
template <class V> void each_member(Of<OptimizerGroupSettings>, [[maybe_unused]] V v) {
  v("at", &OptimizerGroupSettings::at);
  v("kind", &OptimizerGroupSettings::kind);
  v("schedule", &OptimizerGroupSettings::schedule);
  v("clip_norm", &OptimizerGroupSettings::clip_norm);
  v("clip_value", &OptimizerGroupSettings::clip_value);
  v("clip_adaptive", &OptimizerGroupSettings::clip_adaptive);
}
template <class V> void each_member(Of<OptimizerEmaSettings>, [[maybe_unused]] V v) {
  v("at", &OptimizerEmaSettings::at);
  v("decay", &OptimizerEmaSettings::decay);
  v("start", &OptimizerEmaSettings::start);
  v("warmup", &OptimizerEmaSettings::warmup);
}
template <class V> void each_member(Of<OptimizerSwaSettings>, [[maybe_unused]] V v) {
  v("at", &OptimizerSwaSettings::at);
  v("start", &OptimizerSwaSettings::start);
  v("every", &OptimizerSwaSettings::every);
}
template <class V> void each_member(Of<OptimizerLookaheadSettings>, [[maybe_unused]] V v) {
  v("at", &OptimizerLookaheadSettings::at);
  v("k", &OptimizerLookaheadSettings::k);
  v("alpha", &OptimizerLookaheadSettings::alpha);
}
template <class V> void each_member(Of<OptimizerSettings>, [[maybe_unused]] V v) {
  v("kind", &OptimizerSettings::kind);
  v("groups", &OptimizerSettings::groups);
  v("schedule", &OptimizerSettings::schedule);
  v("clip_norm", &OptimizerSettings::clip_norm);
  v("clip_value", &OptimizerSettings::clip_value);
  v("clip_adaptive", &OptimizerSettings::clip_adaptive);
  v("clip_adaptive_eps", &OptimizerSettings::clip_adaptive_eps);
  v("layer_decay", &OptimizerSettings::layer_decay);
  v("ema", &OptimizerSettings::ema);
  v("swa", &OptimizerSettings::swa);
  v("lookahead", &OptimizerSettings::lookahead);
}
template <> inline constexpr std::string_view words_of_enum<PrecisionCompute> = "float32|bfloat16|float16";
template <> inline constexpr std::string_view words_of_enum<PrecisionLossScale> = "dynamic";
template <class V> void each_member(Of<PrecisionSettings>, [[maybe_unused]] V v) {
  v("compute", &PrecisionSettings::compute);
  v("loss_scale", &PrecisionSettings::loss_scale);
  v("growth_interval", &PrecisionSettings::growth_interval);
  v("keep_float32", &PrecisionSettings::keep_float32);
  v("tf32", &PrecisionSettings::tf32);
}
template <> inline constexpr std::string_view words_of_enum<DataKind> = "idx|cifar|npz|csv|tsv|jsonl|lines|images|tokens|text|chat|program";
template <> inline constexpr std::string_view words_of_enum<DataSeparator> = "auto|,|;|tab|bar";
template <> inline constexpr std::string_view words_of_enum<DataDecimal> = ".|,";
template <> inline constexpr std::string_view words_of_enum<DataThousands> = "none|,|.|space|_";
template <> inline constexpr std::string_view words_of_enum<DataOnBad> = "error|skip";
template <> inline constexpr std::string_view words_of_enum<DataElement> = "uint16|uint32";
template <> inline constexpr std::string_view words_of_enum<DataDocuments> = "files|lines";
template <> inline constexpr std::string_view words_of_enum<DataTemplateName> = "chatml|llama3|gemma|phi3|mistral|mistral_v3|mistral_tekken";
template <class V> void each_member(Of<DataTemplateSettings>, [[maybe_unused]] V v) {
  v("name", &DataTemplateSettings::name);
  v("system", &DataTemplateSettings::system);
  v("user", &DataTemplateSettings::user);
  v("assistant", &DataTemplateSettings::assistant);
}
template <> inline constexpr std::string_view words_of_enum<DataTooLong> = "cut|skip|error";
template <class V> void each_member(Of<DataTrainSourceSettings>, [[maybe_unused]] V v) {
  v("files", &DataTrainSourceSettings::files);
  v("weight", &DataTrainSourceSettings::weight);
}
template <> inline constexpr std::string_view words_of_enum<DataTrainEpochEnd> = "first|last";
template <> inline constexpr std::string_view words_of_enum<DataTrainSamplerKind> = "shuffle|weighted|balanced";
template <class V> void each_member(Of<DataTrainSamplerSettings>, [[maybe_unused]] V v) {
  v("kind", &DataTrainSamplerSettings::kind);
  v("field", &DataTrainSamplerSettings::field);
  v("class_weights", &DataTrainSamplerSettings::class_weights);
  v("samples", &DataTrainSamplerSettings::samples);
}
template <class V> void each_member(Of<DataTrainSettings>, [[maybe_unused]] V v) {
  v("files", &DataTrainSettings::files);
  v("sources", &DataTrainSettings::sources);
  v("epoch_end", &DataTrainSettings::epoch_end);
  v("shuffle", &DataTrainSettings::shuffle);
  v("sampler", &DataTrainSettings::sampler);
}
template <class V> void each_member(Of<DataEvalSettings>, [[maybe_unused]] V v) {
  v("files", &DataEvalSettings::files);
  v("fraction", &DataEvalSettings::fraction);
}
template <> inline constexpr std::string_view words_of_enum<DataFieldOutOfRange> = "error|zero";
template <class V> void each_member(Of<DataFieldSettings>, [[maybe_unused]] V v) {
  v("from", &DataFieldSettings::from);
  v("as", &DataFieldSettings::as);
  v("augment", &DataFieldSettings::augment);
  v("out_of_range", &DataFieldSettings::out_of_range);
}
template <class V> void each_member(Of<DataMixSettings>, [[maybe_unused]] V v) {
  v("mixup", &DataMixSettings::mixup);
  v("cutmix", &DataMixSettings::cutmix);
  v("fields", &DataMixSettings::fields);
}
template <class V> void each_member(Of<DataBucketsSettings>, [[maybe_unused]] V v) {
  v("field", &DataBucketsSettings::field);
  v("lengths", &DataBucketsSettings::lengths);
  v("dimension", &DataBucketsSettings::dimension);
  v("pad", &DataBucketsSettings::pad);
  v("fields", &DataBucketsSettings::fields);
}
template <class V> void each_member(Of<DataSettings>, [[maybe_unused]] V v) {
  v("kind", &DataSettings::kind);
  v("root", &DataSettings::root);
  v("separator", &DataSettings::separator);
  v("decimal", &DataSettings::decimal);
  v("thousands", &DataSettings::thousands);
  v("columns", &DataSettings::columns);
  v("header", &DataSettings::header);
  v("missing", &DataSettings::missing);
  v("on_bad", &DataSettings::on_bad);
  v("cache", &DataSettings::cache);
  v("tokenizer", &DataSettings::tokenizer);
  v("labels", &DataSettings::labels);
  v("channels", &DataSettings::channels);
  v("resize", &DataSettings::resize);
  v("resize_short", &DataSettings::resize_short);
  v("center_crop", &DataSettings::center_crop);
  v("scaled_decode", &DataSettings::scaled_decode);
  v("element", &DataSettings::element);
  v("vocabulary", &DataSettings::vocabulary);
  v("header_bytes", &DataSettings::header_bytes);
  v("length", &DataSettings::length);
  v("stride", &DataSettings::stride);
  v("shift", &DataSettings::shift);
  v("document_end", &DataSettings::document_end);
  v("cross_documents", &DataSettings::cross_documents);
  v("pad", &DataSettings::pad);
  v("documents", &DataSettings::documents);
  v("template", &DataSettings::template_);
  v("begin", &DataSettings::begin);
  v("system", &DataSettings::system);
  v("too_long", &DataSettings::too_long);
  v("pack", &DataSettings::pack);
  v("train", &DataSettings::train);
  v("eval", &DataSettings::eval);
  v("fields", &DataSettings::fields);
  v("mix", &DataSettings::mix);
  v("buckets", &DataSettings::buckets);
  v("workers", &DataSettings::workers);
  v("drop_last", &DataSettings::drop_last);
}
template <> inline constexpr std::string_view words_of_enum<EvalMetricKind> = "accuracy|auc|auc_pr|bits_per_token|bits_per_byte|calibration|confusion|dice|f1|gauc|iou|log_loss|loss|mae|mse|perplexity|precision|r2|recall|rmse|top_5|top_k";
template <> inline constexpr std::string_view words_of_enum<EvalMetricAverage> = "binary|macro|micro|none";
template <class V> void each_member(Of<EvalMetricSettings>, [[maybe_unused]] V v) {
  v("kind", &EvalMetricSettings::kind);
  v("name", &EvalMetricSettings::name);
  v("by", &EvalMetricSettings::by);
  v("bytes_per_token", &EvalMetricSettings::bytes_per_token);
  v("average", &EvalMetricSettings::average);
  v("ignore_index", &EvalMetricSettings::ignore_index);
  v("group", &EvalMetricSettings::group);
  v("k", &EvalMetricSettings::k);
}
template <> inline constexpr std::string_view words_of_enum<EvalWeights> = "trained|ema|swa";
template <class V> void each_member(Of<EvalSettings>, [[maybe_unused]] V v) {
  v("every", &EvalSettings::every);
  v("metrics", &EvalSettings::metrics);
  v("best", &EvalSettings::best);
  v("patience", &EvalSettings::patience);
  v("weights", &EvalSettings::weights);
}
template <class V> void each_member(Of<CheckpointSettings>, [[maybe_unused]] V v) {
  v("every", &CheckpointSettings::every);
  v("keep", &CheckpointSettings::keep);
  v("shard_mib", &CheckpointSettings::shard_mib);
}
template <> inline constexpr std::string_view words_of_enum<LogAlso> = "csv|tensorboard";
template <class V> void each_member(Of<LogSettings>, [[maybe_unused]] V v) {
  v("every", &LogSettings::every);
  v("norms", &LogSettings::norms);
  v("also", &LogSettings::also);
  v("histograms", &LogSettings::histograms);
  v("histograms_every", &LogSettings::histograms_every);
}
template <class V> void each_member(Of<TrainConfig>, [[maybe_unused]] V v) {
  v("model", &TrainConfig::model);
  v("policy", &TrainConfig::policy);
  v("device", &TrainConfig::device);
  v("batch_size", &TrainConfig::batch_size);
  v("micro_batch", &TrainConfig::micro_batch);
  v("epochs", &TrainConfig::epochs);
  v("steps", &TrainConfig::steps);
  v("max_time", &TrainConfig::max_time);
  v("seed", &TrainConfig::seed);
  v("threads", &TrainConfig::threads);
  v("name", &TrainConfig::name);
  v("run_dir", &TrainConfig::run_dir);
  v("parameters", &TrainConfig::parameters);
  v("loss", &TrainConfig::loss);
  v("distillation", &TrainConfig::distillation);
  v("optimizer", &TrainConfig::optimizer);
  v("precision", &TrainConfig::precision);
  v("data", &TrainConfig::data);
  v("eval", &TrainConfig::eval);
  v("checkpoint", &TrainConfig::checkpoint);
  v("log", &TrainConfig::log);
}
