// MiniLM on device tpu, for bench/tpu. It prints the times of its start; then each input line holds a number of timed
// runs.
// usage: tpu_worker MODEL_DIR BATCH SEQUENCE
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "rlx/formats/json.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void say(JsonWriter& json) {
  std::cout << json.take() << std::endl;  // NOLINT(endl): whoever asked waits for it
}

void serve(const std::string& folder, std::int64_t batch, std::int64_t sequence) {
  const SentenceModelConfig config = read_sentence_config(folder);
  BertGraphOptions options;
  options.batch = batch;
  options.sequence = sequence;
  options.pooling = config.pooling;
  options.normalize = config.normalize;

  auto start = Clock::now();
  const Session session(Device::Tpu);
  const double open_ms = ms_since(start);
  start = Clock::now();
  CompiledGraph f = session.compile(build_sentence_encoder(config.bert, options));
  const double compile_ms = ms_since(start);
  start = Clock::now();
  const std::string file = weights_path(folder);
  load_checkpoint(f, open_checkpoint(file), file);
  f.finalize();
  const double weights_ms = ms_since(start);

  const auto count = static_cast<std::size_t>(batch * sequence);
  std::vector<std::int32_t> ids(count);
  std::vector<float> mask(count, 1), out(static_cast<std::size_t>(batch * config.bert.hidden_size));
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int32_t>((i * 7919 + 1000) % 30000);
  const TensorView in[] = {{ids.data(), DType::I32, {}, count * 4}, {mask.data(), DType::F32, {}, count * 4}};
  const MutableTensorView to[] = {{out.data(), DType::F32, {}, out.size() * 4}};
  start = Clock::now();
  f.run_into(in, to);
  JsonWriter hello;
  hello.begin_object().member("open_ms", open_ms).member("compile_ms", compile_ms).member("weights_ms", weights_ms);
  hello.member("first_ms", ms_since(start)).member("target", session.target()->name());
  hello.member("check", static_cast<double>(out[0])).end_object();
  say(hello);
  for (std::string line; std::getline(std::cin, line);) {
    JsonWriter json;
    json.begin_object().key("us").begin_array();
    for (int n = std::atoi(line.c_str()); n > 0; --n) {
      start = Clock::now();
      f.run_into(in, to);
      json.value(ms_since(start) * 1e3);
    }
    json.end_array().end_object();
    say(json);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw Error(ErrorCode::InvalidArgument, "usage: tpu_worker MODEL_DIR BATCH SEQUENCE");
  serve(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
