// MiniLM in F64: the reference rules against a NumPy evaluation of the same weights, and the F32 encoder against both.
#include <doctest/doctest.h>

#include <cmath>

#include "rlx/formats/safetensors.h"
#include "rlx/ir/evaluate.h"
#include "rlx/models/sentence_encoder.h"
#include "tests/support/needs.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// Results of NumPy in F64, one text at a time without padding: the first components, sum |y_i| and sum i y_i.
struct Known {
  const char* text;
  double first[6];
  double sum_abs, sum_weighted;
};
constexpr Known kKnown[] = {
    {"The weather is lovely today.",
     {0.019195727459315193, 0.12008537901293449, 0.15959832716229627, 0.06706589534827213, 0.05007481478474492,
      -0.025918726237284893},
     15.760349099056475,
     -110.71851327901959},
    {"It's so sunny outside!",
     {-0.01869036584138071, 0.04151866989565574, 0.07431546432431156, 0.07843274338349232, 0.07556972726394076,
      -0.012507544371473417},
     15.512215348383382,
     -34.82630446310142},
    {"He drove to the stadium.",
     {0.1365019822824225, 0.08227319046265932, -0.02526162971172856, 0.0304513962185239, 0.05331210683319277,
      0.05080919372773179},
     15.689020222597744,
     -153.6470324075955},
};

}  // namespace

TEST_CASE("MiniLM in F64 equals NumPy, in F32 it stays within 2e-6 of that" * doctest::test_suite(kNeedsModel)) {
  const std::string folder = model_dir();
  if (folder.empty()) return skip("the all-MiniLM-L6-v2 model");
  SentenceEncoder encoder(folder);
  const Graph oracle = to_f64(build_sentence_encoder(encoder.config().bert));
  const std::shared_ptr<const SafetensorsFile> file = SafetensorsFile::open(weights_path(folder));
  NamedTensors values;
  for (NodeId id : oracle.leaves(OpKind::Param))
    values.emplace(oracle.leaf_name(id), SafetensorsFile::tensor(file, oracle.leaf_name(id)).cast(DType::F64));

  std::vector<std::string> texts;
  for (const Known& k : kKnown) texts.push_back(k.text);
  BatchOptions padded;
  padded.pad_to_multiple = 16;  // padding must have no effect
  const EncodedBatch batch = encoder.tokenizer().encode_batch(texts, padded);
  values["ids"] = Tensor::of<std::int32_t>({batch.batch, batch.sequence}, batch.ids);
  values["mask"] = Tensor::of<std::int32_t>({batch.batch, batch.sequence}, batch.mask).cast(DType::F64);
  const Tensor exact = evaluate(oracle, values)[0];
  REQUIRE(exact.dtype() == DType::F64);
  REQUIRE(exact.dims() == std::vector<std::int64_t>{3, 384});
  const Tensor rounded = encoder.embed(texts);
  for (std::int64_t t = 0; t < 3; ++t) {
    const Known& known = kKnown[t];
    double sum_abs = 0, sum_weighted = 0;
    Worst worst;
    for (std::int64_t i = 0; i < 384; ++i) {
      const double y = exact.at(t * 384 + i);
      if (i < 6) CHECK(std::fabs(y - known.first[i]) < 1e-12);
      sum_abs += std::fabs(y);
      sum_weighted += static_cast<double>(i) * y;
      worst.add(rounded.at(t * 384 + i), y);
    }
    CHECK(std::fabs(sum_abs - known.sum_abs) < 1e-10);
    CHECK(std::fabs(sum_weighted - known.sum_weighted) < 1e-8);
    CHECK(worst.value() < 2e-6);
  }
}
