// Blocks on checkpoints of each kind: params have the dtypes of the file, matmuls use its values.
#include "rlx/models/flow.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/safetensors.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

Tensor wave(std::vector<std::int64_t> dims, int seed) {
  Tensor t = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), DType::F32));
  for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, static_cast<double>((i * 37 + seed) % 101 - 50) / 64);
  return t;
}

// norm(embed(ids)) through a linear layer with a bias.
Graph small_model(const ModelWeights& weights) {
  Graph g("small");
  Flow flow(g, weights);
  Expr x = flow.embed("table.weight", g.input("ids", Shape({5}, DType::I32)), 16, 32);
  x = flow.norm(x, "norm", NormKind::Rms, 1e-6);
  g.set_outputs({flow.linear(x, "out", 8, true)});
  flow.finish("the small model");
  return g;
}

std::map<std::string, DType> dtypes_of(const CompiledGraph& program) {
  std::map<std::string, DType> out;
  for (const IoInfo& p : program.params()) out.emplace(p.name, p.shape.dtype());
  return out;
}

}  // namespace

TEST_CASE("flow: weights of files and of memory keep their dtypes, and give what their numbers give") {
  const Tensor table = wave({16, 32}, 3), norm = wave({32}, 5), out = wave({8, 32}, 7), bias = wave({8}, 11);
  const Tensor ids = Tensor::of<std::int32_t>({5}, {3, 0, 15, 7, 3});
  const test::TempDir dir;
  const auto typed = [&](DType t) {
    return std::vector<NamedTensor>{{"table.weight", table.cast(t)},
                                    {"norm.weight", norm.cast(t)},
                                    {"out.weight", out.cast(t)},
                                    {"out.bias", bias}};
  };
  for (const DType t : {DType::F32, DType::BF16, DType::F16}) {
    CAPTURE(std::string(dtype_name(t)));
    const std::string name(dtype_name(t));
    dir.write(name + "/config.json", "{}");
    write_safetensors(dir.file(name + "/model.safetensors"), typed(t));
    // The reference: F64 sums of the rounded weights.
    std::vector<double> want;
    const Tensor e = table.cast(t).cast(DType::F32), n = norm.cast(t).cast(DType::F32),
                 w = out.cast(t).cast(DType::F32);
    for (std::int64_t i = 0; i < 5; ++i) {
      double squares = 0;
      for (std::int64_t k = 0; k < 32; ++k) squares += std::pow(e.at(ids.at_i64(i) * 32 + k), 2);
      for (std::int64_t o = 0; o < 8; ++o) {
        double sum = bias.at(o);
        for (std::int64_t k = 0; k < 32; ++k)
          sum += e.at(ids.at_i64(i) * 32 + k) / std::sqrt(squares / 32 + 1e-6) * n.at(k) * w.at(o * 32 + k);
        want.push_back(sum);
      }
    }
    for (const ModelWeights& weights :
         {open_weights(dir.file(name)), open_weights(dir.file(name + "/model.safetensors")),
          weights_in_memory(typed(t))}) {
      Graph g = small_model(weights);
      Graph other("other");
      const Flow flow(other, weights);
      CHECK(flow.weights().source == weights.source);
      CompiledGraph program = Session().compile(std::move(g));
      CHECK(dtypes_of(program) ==
            std::map<std::string, DType>{
                {"table.weight", t}, {"out.weight", t}, {"norm.weight", DType::F32}, {"out.bias", DType::F32}});
      CHECK(flow.load(program) == 4);
      const Tensor y = program.run_typed({{"ids", ids}})[0];
      for (std::int64_t i = 0; i < 40; ++i) CHECK(std::fabs(y.at(i) - want[static_cast<std::size_t>(i)]) <= 1e-4);
    }
  }
}

TEST_CASE("flow: blocks of a GGUF file are read as they are") {
  const test::TempDir dir;
  std::vector<NamedTensor> floats;
  {
    GgufWriter w(dir.file("m.gguf"));
    const std::vector<std::int64_t> table{16, 32}, out{8, 32}, row{32}, few{8};
    w.set_string("general.architecture", "none");
    w.add_tensor("table.weight", GgufType::Q8_0, table);
    w.add_tensor("norm.weight", GgufType::F32, row);
    w.add_tensor("out.weight", GgufType::Q4_0, out);
    w.add_tensor("out.bias", GgufType::F32, few);
    w.begin();
    for (const auto& [scheme, dims, seed] : {std::tuple{QuantScheme::Q8_0, table, 3},
                                             {QuantScheme::Affine, row, 5},
                                             {QuantScheme::Q4_0, out, 7},
                                             {QuantScheme::Affine, few, 11}}) {
      const Tensor t = wave(dims, seed);
      if (scheme == QuantScheme::Affine) {
        w.write({t.data(), t.size_bytes()});
        continue;
      }
      const BlockLayout& layout = block_layout(scheme);
      std::vector<std::byte> blocks(static_cast<std::size_t>(t.num_elements() / layout.elements * layout.bytes));
      quantize_blocks(scheme, t.values<float>(), blocks);
      w.write(blocks);
    }
    w.commit();
  }
  const auto file = GgufFile::open(dir.file("m.gguf"));
  for (const GgufTensor& t : file->tensors()) floats.push_back({std::string(t.name), file->decoded(t.name)});
  const Tensor ids = Tensor::of<std::int32_t>({5}, {3, 0, 15, 7, 3});
  const auto run = [&](const ModelWeights& weights, std::map<std::string, DType>& dtypes) {
    CompiledGraph program = Session().compile(small_model(weights));
    dtypes = dtypes_of(program);
    Graph g("g");
    (void)Flow(g, weights).load(program);
    return program.run_typed({{"ids", ids}})[0];
  };
  std::map<std::string, DType> dtypes, plain;
  const Tensor blocks = run(open_weights(dir.file("m.gguf")), dtypes), numbers = run(weights_in_memory(floats), plain);
  CHECK(dtypes["table.weight"] == DType::U8);
  CHECK(dtypes["out.weight"] == DType::U8);
  CHECK(plain["out.weight"] == DType::F32);
  for (std::int64_t i = 0; i < 40; ++i) CHECK(std::fabs(blocks.at(i) - numbers.at(i)) <= 1e-4);
}

TEST_CASE("flow: checkpoints that are none are refused") {
  const test::TempDir dir;
  CHECK(contains(error_text([&] { (void)open_weights(dir.file("nowhere")); }), "nowhere"));
  CHECK(contains(error_text([&] { (void)open_weights(dir.path()); }), "model.safetensors"));
  CHECK(contains(error_text([&] { (void)open_weights(dir.write("x.safetensors", "no header")); }), "x.safetensors"));
  CHECK(contains(error_text([&] { (void)open_weights(dir.write("x.gguf", "GGUF")); }), "x.gguf"));
  const Tensor one = Tensor::of<float>({1}, {1});
  CHECK(contains(error_text([&] {
                   (void)weights_in_memory({{"a", one}, {"a", one}}, "mine");
                 }),
                 "mine: 'a' is given twice"));
  Graph g("g");
  CompiledGraph program = Session().compile(small_model(weights_in_memory({{"table.weight", wave({16, 32}, 1)},
                                                                           {"norm.weight", wave({32}, 1)},
                                                                           {"out.weight", wave({8, 32}, 1)},
                                                                           {"out.bias", wave({8}, 1)}})));
  CHECK(contains(error_text([&] { (void)Flow(g, DType::F32).load(program); }), "the flow has no checkpoint"));
}

}  // namespace rlx
