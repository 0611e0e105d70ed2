// Weights in a mapped file that is made shorter: loads and runs throw by the file's name, and none gives zeros.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "rlx/formats/safetensors.h"
#include "rlx/ir/builder.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

constexpr std::int64_t kWeightRows = 512;  // 1 MiB of weights

CompiledGraph program() {
  Graph g("cut");
  const Expr x = g.input("x", Shape({Dim(4), Dim(kWeightRows)}, DType::F32));
  const Expr w = g.param("w", Shape({Dim(kWeightRows), Dim(kWeightRows)}, DType::F32));
  const Expr b = g.param("b", Shape({Dim(kWeightRows)}, DType::F32));
  g.set_outputs({g.add(g.matmul(x, w), b)});
  return Session(Device::Cpu).compile(std::move(g));
}

}  // namespace

TEST_CASE("cut weights: a load, a preparation, a run and an input of a file that was made shorter") {
  const test::TempDir folder;
  const std::string path = folder.file("w.safetensors");
  const Tensor w = Tensor::full(Shape({Dim(kWeightRows), Dim(kWeightRows)}, DType::F32), 1.0),
               b = Tensor::full(Shape({Dim(kWeightRows)}, DType::F32), 1.0),
               x = Tensor::full(Shape({Dim(4), Dim(kWeightRows)}, DType::F32), 1.0);
  const NamedTensor tensors[] = {{"w", w}, {"b", b}, {"x", x}};
  const NamedTensors inputs{{"x", x}};
  const auto cut = [&] { std::filesystem::resize_file(path, 4096); };
  const std::string expected = concat_text("\"", path, "\" was made shorter");
  SUBCASE("before the load") {
    write_safetensors(path, tensors);
    const auto file = SafetensorsFile::open(path);
    CompiledGraph p = program();
    cut();
    const std::string said = error_text([&] {
      (void)p.load_params(file, LoadMode::Subset);
      (void)p.run_typed(inputs);
    });
    CHECK_MESSAGE(contains(said, expected), said);
    CHECK(contains(error_text([&] { (void)p.run_typed(inputs); }), expected));
    const CompiledGraph copy = p.clone();
    CHECK(contains(error_text([&] { (void)p.clone().run_typed(inputs); }), expected));
    // With whole weights the program runs again.
    write_safetensors(path, tensors);
    (void)p.load_params(SafetensorsFile::open(path), LoadMode::Subset);
    CHECK(p.run_typed(inputs).at(0).at(0) == kWeightRows + 1);
  }
  SUBCASE("between load and run") {
    write_safetensors(path, tensors);
    CompiledGraph p = program();
    (void)p.load_params(SafetensorsFile::open(path), LoadMode::Subset);
    cut();
    std::string said;
    double value = kWeightRows + 1;
    said = error_text([&] { value = p.run_typed(inputs).at(0).at(0); });
    CHECK_MESSAGE((said.empty() || contains(said, expected)), said);
    CHECK(value == kWeightRows + 1);  // packed weights are whole, or the run throws
  }
  SUBCASE("an input") {
    write_safetensors(path, tensors);
    CompiledGraph p = program();
    p.set_param("w", w);
    p.set_param("b", b);
    const auto file = SafetensorsFile::open(path);
    const NamedTensors mapped{{"x", SafetensorsFile::tensor(file, "x")}};
    CHECK(p.run_typed(mapped).at(0).at(0) == kWeightRows + 1);
    cut();
    for (int i = 0; i < 2; ++i) {
      const std::string said = error_text([&] { (void)p.run_typed(mapped); });
      CHECK_MESSAGE(contains(said, expected), said);
    }
    CHECK(p.run_typed(inputs).at(0).at(0) == kWeightRows + 1);
  }
  SUBCASE("a constant") {
    write_safetensors(path, tensors);
    const auto file = SafetensorsFile::open(path);
    Graph g("constant");
    g.set_outputs({g.sum(g.constant(SafetensorsFile::tensor(file, "x")) * g.input("y", Shape({1}, DType::F32)))});
    cut();
    CHECK(contains(error_text([&] {
                     CompiledGraph p = Session(Device::Cpu).compile(std::move(g));
                     (void)p.run_typed({{"y", Tensor::full(Shape({1}, DType::F32), 1)}});
                   }),
                   expected));
  }
  SUBCASE("a tensor that is read as a whole") {
    write_safetensors(path, tensors);
    const auto file = SafetensorsFile::open(path);
    Tensor mapped = SafetensorsFile::tensor(file, "x"), own = mapped;
    cut();
    CHECK(contains(error_text([&] { (void)mapped.cast(DType::F64); }), expected));
    CHECK(contains(error_text([&] { (void)mapped.to_f32(); }), expected));
    CHECK(contains(error_text([&] { (void)Tensor::copy_of(mapped.data(), mapped.shape()); }), expected));
    CHECK(contains(error_text([&] { (void)mapped.to_f64(); }), expected));
    CHECK(contains(error_text([&] { (void)mapped.identical(x); }), expected));
    CHECK(contains(error_text([&] { (void)own.mutable_data(); }), expected));
    CHECK(contains(error_text([&] { (void)mapped.cast(DType::F64); }), expected));
  }
  SUBCASE("a file that is written from it") {
    write_safetensors(path, tensors);
    const auto file = SafetensorsFile::open(path);
    const NamedTensor again[] = {{"b", SafetensorsFile::tensor(file, "b")}, {"x", SafetensorsFile::tensor(file, "x")}};
    cut();
    const std::string to = folder.write("to.safetensors", "old");
    CHECK(contains(error_text([&] { write_safetensors(to, again); }), "\""));
    CHECK(std::filesystem::file_size(to) == 3);
  }
}

}  // namespace rlx
