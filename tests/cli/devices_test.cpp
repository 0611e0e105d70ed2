// `rlx devices` and `rlx bench`: what can run here, the environment variables, kernels beside their floor.
#include <cstdlib>

#include <doctest/doctest.h>

#include "rlx/formats/json.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/env.h"
#include "rlx/tensor/dtype.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"

using namespace rlx;
using namespace rlx::test;

TEST_CASE("rlx devices lists every device once") {
  const ProgramResult r = run_rlx("devices");
  CHECK(r.status == 0);
  for (const char* id :
       {"cpu", "metal", "mlx", "ane", "cuda", "rocm", "tpu", "gpu", "vulkan", "opengl", "directx", "webgpu"})
    CHECK(contains(r.out, std::string("  ") + id + " "));
  CHECK(contains(run_rlx("devices --format json").out, "\"id\":\"cpu\""));
  CHECK(contains(r.out, "this version has no CUDA backend"));  // no option that the build does not have
  CHECK(!contains(r.out, "RLX_CUDA"));
}

TEST_CASE("rlx devices --dtypes: the table of docs/devices.md") {
  const ProgramResult r = run_rlx("devices --dtypes");
  REQUIRE(r.status == 0);
  const bool current = rlx::test::read_file(source_path("docs/devices.md")) == r.out;
  CHECK_MESSAGE(current, "what runs changed: run `build/dev/rlx devices --dtypes -o docs/devices.md`");
  // The cell of an op on the cpu, the first device.
  const auto on_cpu = [&](std::string_view op) {
    const std::size_t at = r.out.find(concat_text("\n| `", op, "` | "));
    REQUIRE_MESSAGE(at != std::string::npos, op);
    const std::size_t cell = r.out.find("` | ", at) + 4;
    return r.out.substr(cell, r.out.find(" |", cell) - cell);
  };
  for (int i = 0; i < kNumDTypes; ++i) CHECK(contains(on_cpu("cast"), std::string(dtype_name(static_cast<DType>(i)))));
  for (const OpDef* def : all_op_defs())  // a dtype that an op takes runs on the cpu
    if (!def->is_leaf() && def->level != Level::Lir) CHECK_MESSAGE(!contains(on_cpu(def->name), "~~"), def->name);
  CHECK(run_rlx("devices --dtypes --env").status == 2);
  CHECK(run_rlx("devices -o x").status == 2);
}

TEST_CASE("rlx devices --options; --device with options") {
  const ProgramResult r = run_rlx("devices --options"), json = run_rlx("devices --options --format json");
  CHECK(r.status == 0);
  CHECK(contains(r.out, "cpu       threads "));
  CHECK(contains(r.out, "\nvulkan    kernels "));
  CHECK(contains(json.out, "{\"device\":\"tpu\",\"name\":\"plugin\""));
  CHECK(run_rlx("devices --options --env").status == 2);
  const auto refused = [](const char* device, const char* why) {
    const ProgramResult x = run_rlx(concat_text("inspect - --code --device \"", device, "\""),
                                    "graph @g {\n  %0 = input() {name = \"x\"} : [4] f32\n  return %0\n}\n");
    CHECK_MESSAGE(contains(x.err, why), x.err);
    CHECK(x.status != 0);
  };
  refused("vulkan,kernels", "'kernels' in 'vulkan,kernels' is not a device option");
  refused("vulkan,=x", "is not a device option");
  refused("vulkan,kernels=fast", "hardware or software");
  refused("vulkan,kernel=software", "did you mean 'kernels'?");
  refused("vulkan:x", "'x' is not an ordinal");
  refused("vulkan,kernels=software,kernels=hardware", "gives option 'kernels' twice");
  refused("reference,x=y", "backend 'reference' takes no options");
}

TEST_CASE("rlx devices --env: every variable with its meaning, and its value when set") {
  const ProgramResult r = run_rlx("devices --env"), json = run_rlx("devices --env --format json");
  CHECK(r.status == 0);
  REQUIRE(!env_variables().empty());
  for (const EnvVariable& v : env_variables()) {
    CHECK(contains(r.out, concat_text(v.name, " ")));
    CHECK(contains(r.out, std::string(v.what)));
    CHECK(contains(json.out, concat_text("\"name\":\"", v.name, "\"")));
  }
  REQUIRE(setenv("RLX_THREADS", "7", 1) == 0);  // for the program that is run
  CHECK(contains(run_rlx("devices --env").out, "(now: 7)"));
  unsetenv("RLX_THREADS");
}

TEST_CASE("rlx bench --breakdown: kernels beside the roofline measured in the same run" *
          doctest::test_suite(kNeedsModel)) {
  if (model_dir().empty()) return skip("the MiniLM model");
  const ProgramResult r =
      run_rlx("bench --model " + model_dir() + " --shapes 1x8 --threads 1 --runs 3 --seconds 0.1 --breakdown");
  REQUIRE_MESSAGE(r.status == 0, r.err);
  CHECK(contains(r.out, "roofline, measured now on one thread: "));
  CHECK(contains(r.out, "16 KiB: "));
  CHECK(contains(r.out, "65536 KiB: "));
  CHECK(contains(r.out, "roofline us"));
  CHECK(contains(r.out, "gemm_packed_f32"));
  CHECK(contains(r.out, "\n  all "));
  CHECK(!contains(r.out, "waiting"));
  const ProgramResult two =
      run_rlx("bench --model " + model_dir() + " --shapes 8x32 --threads 2 --runs 3 --seconds 0.1 --breakdown");
  REQUIRE_MESSAGE(two.status == 0, two.err);
  CHECK(contains(two.out, "ms a run of each thread"));
  CHECK(contains(two.out, "caller"));
  CHECK(contains(two.out, "\nwaiting "));
  // bench/minilm divides these two.
  const ProgramResult json =
      run_rlx("bench --model " + model_dir() + " --shapes 1x8 --threads 1 --runs 3 --seconds 0.1 --json");
  const JsonDocument row = JsonDocument::parse(json.out, "row");
  CHECK(row.root_object().get_number("gemm_gflop") > 0.9 * row.root_object().get_number("gflop"));
  CHECK(row.root_object().get_number("gemm_us") > 0);
}
