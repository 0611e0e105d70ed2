// Runs encoders on the texts of references.
#pragma once

#include "rlx/formats/json.h"
#include "rlx/models/encoder.h"
#include "rlx/runtime/session.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/temp_dir.h"

namespace rlx::test {

/// The results of build_encoder for all texts of a reference at once.
inline Tensor run_encoder(const EncoderReference& r, const EncoderGraphOptions& options,
                          const Session& session = Session()) {
  const TempDir folder;
  write_model(folder, r);
  const EncoderConfig config = parse_encoder_config(JsonDocument::read(folder.file("config.json")));
  const ModelWeights weights = open_encoder_weights(folder.path(), config, options);
  CompileOptions compile;
  compile.symbol_modes = {{"batch", SymbolMode::runtime(r.batch())}, {"seq", SymbolMode::runtime(config.max_tokens)}};
  CompiledGraph f = session.compile_with(build_encoder(config, weights, options), std::move(compile));
  f.load_params(weights.loader, LoadMode::Subset);
  NamedTensors inputs{{"ids", r.ids}, {"mask", r.mask()}};
  if (options.types) inputs.emplace("types", r.types);
  return f.run_typed(inputs)[0];
}

/// One text of a reference, without padding.
inline EncoderReference row_of(const EncoderReference& r, std::int64_t row) {
  EncoderReference out = r;
  const auto length = r.lengths[static_cast<std::size_t>(row)];
  const auto first = static_cast<std::size_t>(row * r.sequence());
  const auto cut = [&](const Tensor& all) {
    const auto from = all.values<std::int32_t>().subspan(first, static_cast<std::size_t>(length));
    return Tensor::of<std::int32_t>({1, length}, std::vector<std::int32_t>(from.begin(), from.end()));
  };
  out.ids = cut(r.ids), out.types = cut(r.types);
  out.lengths = {length};
  return out;
}

}  // namespace rlx::test
