// Answers at the terminal: streamed text, ctrl-C, timings.
#include "cli/shown_answer.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

namespace rlx::cli {
namespace {

// While an answer is generated, ctrl-C ends the answer and not the program.
volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }
class AnswerInterrupts {
 public:
  AnswerInterrupts() : before_(std::signal(SIGINT, note_interrupt)) { interrupted = 0; }
  ~AnswerInterrupts() { std::signal(SIGINT, before_); }
  AnswerInterrupts(const AnswerInterrupts&) = delete;
  AnswerInterrupts& operator=(const AnswerInterrupts&) = delete;

 private:
  void (*before_)(int);
};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

ShownAnswer show_answer(Engine& engine, std::span<const TokenId> prompt, const GenerationOptions& options,
                        bool timings) {
  const AnswerInterrupts guard;
  const Clock::time_point start = Clock::now();
  const EngineStatistics before = engine.statistics();
  const RequestId id = engine.submit(prompt, options);
  ShownAnswer out;
  std::optional<Diagnostic> problem;
  double first = 0;
  std::size_t drawn = 0;
  try {
    while (out.finish == FinishReason::None) {
      if (interrupted) engine.cancel(id);
      for (const GenerationEvent& e : engine.step()) {
        if (e.request != id) continue;
        if (e.token >= 0 && drawn++ == 0) first = seconds_since(start);
        if (e.token >= 0 && e.finish != FinishReason::StopToken) out.tokens.push_back(e.token);
        show(e.text);
        out.text += e.text;
        out.finish = e.finish;
        out.begun = e.begun;
        problem = e.problem;
      }
    }
  } catch (...) {
    engine.cancel(id);  // otherwise it would run together with the next answer
    throw;
  }
  const double rest = seconds_since(start) - first;
  if (out.text.empty() || out.text.back() != '\n') show("\n");
  if (timings) {
    const std::size_t later = drawn - std::min<std::size_t>(drawn, 1);
    const double each = later > 0 ? rest / static_cast<double>(later) : 0;
    std::fprintf(stderr,
                 "prompt: %zu tokens (%lld reused), first token after %.0f ms; then %zu tokens, %.2f ms each (%.1f a "
                 "second)\n",
                 prompt.size(), static_cast<long long>(engine.statistics().reused_tokens - before.reused_tokens),
                 first * 1e3, later, each * 1e3, each > 0 ? 1 / each : 0.0);
  }
  const std::int64_t drafted = engine.statistics().drafted_tokens - before.drafted_tokens;
  if (timings && drafted > 0)
    std::fprintf(stderr, "drafts: %lld of %lld tokens accepted; %lld runs\n",
                 static_cast<long long>(engine.statistics().accepted_tokens - before.accepted_tokens),
                 static_cast<long long>(drafted), static_cast<long long>(engine.statistics().runs - before.runs));
  if (problem) throw Error(*problem);
  if (out.finish == FinishReason::ContextFull)
    std::fprintf(stderr, "rlx: the answer ends here: the context of %lld tokens is full (--context)\n",
                 static_cast<long long>(engine.model().context()));
  return out;
}

}  // namespace rlx::cli
