// The table of samples by kind, and the samples of custom ops.
#include "rlx/testing/op_samples.h"

#include <array>
#include <map>
#include <mutex>

namespace rlx::testing {

#define RLX_DECLARE_SAMPLES(Kind) \
  template <>                     \
  void samples<ops::Kind>(SampleSet&);
RLX_FOR_EACH_OP(RLX_DECLARE_SAMPLES)
#undef RLX_DECLARE_SAMPLES

// Each registered op has its own samples.
template <>
void samples<ops::Custom>(SampleSet&) {}

namespace {

#define RLX_SAMPLES_OF(Kind) &samples<ops::Kind>,
constexpr std::array<SamplesFn, kNumOpKinds> kSamples{RLX_FOR_EACH_OP(RLX_SAMPLES_OF)};
#undef RLX_SAMPLES_OF

struct CustomSamples {
  std::mutex mutex;
  std::map<std::string, SamplesFn, std::less<>> functions;
};
CustomSamples& custom_samples() {
  static CustomSamples all;
  return all;
}

std::vector<Sample> made_by(SamplesFn fn) {
  SampleSet set;
  fn(set);
  return set.all();
}

}  // namespace

std::vector<Sample> op_samples(OpKind kind) {
  return made_by(kSamples[static_cast<std::size_t>(op_def(kind).kind)]);  // op_def rejects invalid kinds
}

std::vector<Sample> op_samples(const OpDef& def) {
  if (def.kind != OpKind::Custom) return op_samples(def.kind);
  SamplesFn fn = nullptr;
  {
    CustomSamples& all = custom_samples();
    const std::lock_guard lock(all.mutex);
    if (const auto it = all.functions.find(def.name); it != all.functions.end()) fn = it->second;
  }
  return fn ? made_by(fn) : std::vector<Sample>();
}

void add_op_samples(std::string_view name, SamplesFn fn) {
  CustomSamples& all = custom_samples();
  const std::lock_guard lock(all.mutex);
  if (!all.functions.emplace(name, fn).second)
    throw Error(ErrorCode::InvalidArgument, concat_text("add_op_samples('", name, "'): the op has samples already"));
}

}  // namespace rlx::testing
