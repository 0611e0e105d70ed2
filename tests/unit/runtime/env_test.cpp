// Environment variables: prefixes, overrides and their end, flags, numbers, and the output that they request from a
// compile.
#include "rlx/runtime/env.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "rlx/runtime/reports.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

TEST_CASE("a variable is read with and without its prefix; an override wins while it lasts") {
  REQUIRE(::setenv("RLX_TEST_VALUE", "outside", 1) == 0);
  CHECK(env_get("RLX_TEST_VALUE") == "outside");
  CHECK(env_get("TEST_VALUE") == "outside");
  env_set("TEST_VALUE", "set");
  CHECK(env_get("RLX_TEST_VALUE") == "set");
  {
    RuntimeOverrides outer("RLX_TEST_VALUE", "outer");
    CHECK(env_get("TEST_VALUE") == "outer");
    {
      RuntimeOverrides inner("TEST_VALUE", "inner");
      CHECK(env_get("TEST_VALUE") == "inner");
    }
    CHECK(env_get("TEST_VALUE") == "outer");
  }
  CHECK(env_get("TEST_VALUE") == "set");
  env_unset("RLX_TEST_VALUE");
  CHECK(env_get("TEST_VALUE") == "outside");
  {
    RuntimeOverrides only("TEST_VALUE", "");
    CHECK(env_get("TEST_VALUE") == "");
  }
  CHECK(env_get("TEST_VALUE") == "outside");
  REQUIRE(::unsetenv("RLX_TEST_VALUE") == 0);
  CHECK(!env_get("TEST_VALUE"));
}

TEST_CASE("flags and numbers") {
  for (const char* off : {"", "0", "false", "OFF", "No"}) {
    RuntimeOverrides o("TEST_FLAG", off);
    CHECK_MESSAGE(!env_flag("TEST_FLAG"), off);
  }
  for (const char* on : {"1", "true", "yes", "anything"}) {
    RuntimeOverrides o("TEST_FLAG", on);
    CHECK_MESSAGE(env_flag("TEST_FLAG"), on);
  }
  CHECK(!env_flag("TEST_FLAG"));
  CHECK(!env_int("TEST_NUMBER"));
  RuntimeOverrides empty("TEST_NUMBER", "");
  CHECK(!env_int("TEST_NUMBER"));
  RuntimeOverrides twelve("TEST_NUMBER", "12");
  CHECK(env_int("TEST_NUMBER") == 12);
  for (const char* bad : {"0", "-1", "2x", "1e3", "99999999999"}) {
    RuntimeOverrides o("TEST_NUMBER", bad);
    CHECK_MESSAGE(test::contains(test::error_text([] { (void)env_int("TEST_NUMBER"); }), "RLX_TEST_NUMBER = '"), bad);
  }
}

TEST_CASE("overrides reach sessions") {
  RuntimeOverrides threads("RLX_THREADS", "1");
  CHECK(Session().target()->threads() == 1);
  CHECK(Session().with_threads(2).target()->threads() == 2);  // the setting of the program takes precedence
  RuntimeOverrides bad("RLX_THREADS", "none");
  CHECK(test::contains(test::error_text([] { Session s; }), "RLX_THREADS = 'none' is not a positive number"));
}

TEST_CASE("every documented variable has its prefix and says what it does") {
  CHECK(env_variables().size() >= 6);
  for (const EnvVariable& v : env_variables()) {
    CHECK(v.name.starts_with("RLX_"));
    CHECK(!v.what.empty());
  }
}

TEST_CASE("reports are printed when a variable or an option asks for them") {
  Graph g("g");
  g.set_outputs({g.relu(g.input("x", {{2}, DType::F32}))});
  const CompileResult r = CompilePipeline(Session().target()).compile_graph(std::move(g));
  CHECK(!maybe_log_fusion(r));
  CHECK(!maybe_log_dispatch(r));
  CHECK(maybe_log_fusion(r, true));
  CHECK(maybe_log_dispatch(r, true));
  {
    RuntimeOverrides fusion("RLX_FUSION_REPORT", "1");
    CHECK(maybe_log_fusion(r));
    CHECK(!maybe_log_dispatch(r));
  }
  {
    RuntimeOverrides dispatch("RLX_DISPATCH_REPORT", "1");
    CHECK(!maybe_log_fusion(r));
    CHECK(maybe_log_dispatch(r));
  }
  RuntimeOverrides verbose("RLX_VERBOSE", "1");
  CHECK(maybe_log_fusion(r));
  CHECK(maybe_log_dispatch(r));
  CHECK(maybe_dump_pipeline(r).empty());  // RLX_IR_DUMP is not set
}

}  // namespace
}  // namespace rlx
