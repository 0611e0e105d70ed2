// The tables of op samples in the source tree match the samples, and the command reads every sample back.
#include "tests/support/op_tables.h"

#include <doctest/doctest.h>

#include "cli/op_samples.h"
#include "rlx/ir/text.h"
#include "tests/support/paths.h"

namespace rlx {

TEST_CASE("lint: the tables of op samples are those that update_op_tables writes") {
  // The texts are long, so a difference is reported without them.
  const bool samples = test::read_file(test::source_path(test::kSamplesTable)) == test::op_samples_table();
  const bool examples = test::read_file(test::source_path(test::kExamplesTable)) == test::op_examples_table();
  CHECK_MESSAGE(samples, test::kSamplesTable, " is out of date: build the target update_op_tables");
  CHECK_MESSAGE(examples, test::kExamplesTable, " is out of date: build the target update_op_tables");
}

TEST_CASE("lint: the command shows the samples that tests run") {
  std::size_t count = 0;
  for (const OpDef* def : all_op_defs()) {
    const std::vector<testing::Sample> shown = cli::shown_samples(*def), own = testing::op_samples(*def);
    INFO("op ", std::string(def->name));
    REQUIRE(shown.size() == own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      INFO("sample ", own[i].name);
      ++count;
      CHECK(shown[i].name == own[i].name);
      CHECK(same_op(shown[i].op, own[i].op));
      REQUIRE(shown[i].inputs.size() == own[i].inputs.size());
      for (std::size_t k = 0; k < own[i].inputs.size(); ++k) {
        CHECK(shown[i].inputs[k].shape == own[i].inputs[k].shape);
        CHECK(shown[i].inputs[k].fill == own[i].inputs[k].fill);
        CHECK(shown[i].inputs[k].bound == own[i].inputs[k].bound);
      }
    }
  }
  CHECK(count > 1000);
}

}  // namespace rlx
