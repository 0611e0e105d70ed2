// Misuse of rlx::testing, and the mistakes that its checks find.
#include "rlx/ir/custom_op.h"
#include "rlx/testing/check_op.h"
#include "rlx/testing/drawn_values.h"
#include "tests/support/custom_ops.h"
#include "tests/unit/api/misuse.h"

namespace rlx {
namespace {

void one_vector(testing::SampleSet& s) { s.add("vector", {Shape({4}, DType::F32)}, custom_op("test.halved_slope")); }
void of_a_string(testing::SampleSet& s) { s.add("no op", {Shape({2}, DType::F32)}, custom_op("test.nobody_has_it")); }

// x^2 with a gradient that is too small by half, and a batch rule that uses the wrong slices.
OpDef halved_slope() {
  OpDef def = test::plain_record("test.halved_slope");
  def.decompose = +[](DecomposeContext& c) { c.set_result(c.input(0) * c.input(0)); };
  def.reference = by_decomposition;
  def.vjp = +[](VjpContext& c) { c.accumulate(0, c.cotangent() * c.input(0)); };
  def.jvp = by_decomposition;
  def.batch = +[](BatchContext& c) { c.set_result(c.graph().reverse(c.lifted(0) * c.lifted(0), {0})); };
  return def;
}

}  // namespace

TEST_CASE("misuse: samples and checks of ops") {
  test::custom_ops();
  REFUSED("has samples already", testing::add_op_samples("test.scaled_tanh", one_vector));
  REFUSED("there is no op 'no_such_op'", testing::check_op("no_such_op"));
  REFUSED("77", testing::op_samples(static_cast<OpKind>(9977)));
  REFUSED("n", testing::draw(Shape({Dim::symbol("n")}, DType::F32), Fill::Normal, 1, 1));
  testing::SampleSet symbolic;
  symbolic.add("of a run", {Shape({Dim::symbol("n")}, DType::F32)}, custom_op("test.bare"));
  REFUSED("n", testing::draw_operands(symbolic.all().front()));
}

TEST_CASE("check_op: good ops have no problems, each fault is one") {
  test::custom_ops();
  for (const char* name : {"test.scaled_tanh", "test.sum_and_difference", "softmax", "top_k", "concat"}) {
    const testing::OpCheck good = testing::check_op(name);
    CHECK(good.samples > 1);
    CHECK(good.checks > good.samples);
    for (const std::string& problem : good.problems) FAIL_CHECK(name << ", " << problem);
  }
  CHECK(testing::check_op("test.bare").samples == 0);

  register_op(halved_slope());
  testing::add_op_samples("test.halved_slope", one_vector);
  std::string told;
  for (const std::string& problem : testing::check_op("test.halved_slope").problems) told += problem + "\n";
  CHECK_MESSAGE(told.find("sample 'vector': vjp: ") != std::string::npos, told);
  CHECK_MESSAGE(told.find("vjp gives ") != std::string::npos, told);
  CHECK_MESSAGE(told.find("vmap over x0, slice 0: result 0 is ") != std::string::npos, told);
  CHECK_MESSAGE(told.find("jvp: ") == std::string::npos, told);

  // An exception is reported as a problem of its sample.
  OpDef absent = test::plain_record("test.without_its_op");
  register_op(absent);
  testing::add_op_samples("test.without_its_op", of_a_string);
  const testing::OpCheck failed = testing::check_op("test.without_its_op");
  REQUIRE(failed.problems.size() == 1);
  CHECK(failed.problems[0].find("no op 'test.nobody_has_it' is registered") != std::string::npos);
}

}  // namespace rlx
