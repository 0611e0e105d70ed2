// MiniLM with runtime symbols has the fusions of a specialized compile, and the same vectors bit for bit.
#include <doctest/doctest.h>

#include "rlx/models/sentence_encoder.h"
#include "rlx/runtime/session.h"
#include "tests/support/needs.h"

using namespace rlx;
using namespace rlx::test;

TEST_CASE("MiniLM with runtime symbols equals the specialised one" * doctest::test_suite(kNeedsModel)) {
  const std::string folder = model_dir();
  if (folder.empty()) return skip("the all-MiniLM-L6-v2 model");
  const SentenceModelConfig config = read_sentence_config(folder);
  const std::shared_ptr<const WeightLoader> weights = open_checkpoint(weights_path(folder));
  CompileOptions options;
  options.symbol_modes = {{"batch", SymbolMode::runtime(4)}, {"seq", SymbolMode::bucket(power_of_two_ladder(16, 128))}};
  CompiledGraph exact = Session().compile(build_sentence_encoder(config.bert));
  CompiledGraph bucket = Session().compile_with(build_sentence_encoder(config.bert), options);
  options.symbol_modes["seq"] = SymbolMode::runtime(128);
  CompiledGraph f = Session().compile_with(build_sentence_encoder(config.bert), options);
  for (CompiledGraph* graph : {&exact, &bucket, &f}) graph->load_params(weights, LoadMode::Subset);
  for (const auto& [b, s] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 16}, {2, 77}, {4, 1}, {3, 128}, {1, 33}}) {
    const std::int64_t batch = b, seq = s;  // clang 15 cannot capture structured bindings
    CAPTURE(batch);
    CAPTURE(seq);
    Tensor ids = Tensor::zeros(Shape({batch, seq}, DType::I32)), mask = Tensor::zeros(Shape({batch, seq}, DType::F32));
    for (std::int64_t i = 0; i < ids.num_elements(); ++i) {
      ids.set(i, static_cast<double>(1000 + i * 7919 % 20000));
      mask.set(i, i % seq <= seq * 3 / 4 ? 1 : 0);
    }
    const NamedTensors inputs{{"ids", ids}, {"mask", mask}};
    const std::vector<float> expected = exact.run_typed(inputs)[0].to_f32();
    CHECK(f.run_typed(inputs)[0].to_f32() == expected);
    CHECK(bucket.run_typed(inputs)[0].to_f32() == expected);
  }
  const FusionReport &a = exact.compile_result().fusion, &b = f.compile_result().fusion;
  CHECK(a.fused == b.fused);
  CHECK(a.after == b.after);
  CHECK(a.missed.size() == b.missed.size());
  CHECK(f.prepared_bytes() <= exact.prepared_bytes());
}
