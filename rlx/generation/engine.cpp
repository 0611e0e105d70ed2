// Requests, the sequences they run in, and the turns they take.
#include "rlx/generation/engine.h"

#include <algorithm>
#include <deque>
#include <list>
#include <utility>

#include "rlx/error.h"
#include "rlx/generation/batch.h"
#include "rlx/generation/prefix_cache.h"
#include "rlx/generation/stop_strings.h"
#include "rlx/text/stream_decoder.h"

namespace rlx {

std::string_view finish_reason_name(FinishReason reason) {
  constexpr std::string_view kNames[] = {"", "stop_token", "stop_string", "max_tokens", "context_full", "cancelled"};
  const auto at = static_cast<std::size_t>(reason);
  if (at >= std::size(kNames)) detail::throw_no_enumerator("FinishReason", static_cast<std::int64_t>(at));
  return kNames[at];
}

namespace {

struct Request {
  RequestId id = 0;
  GenerationOptions options;
  Sampler sampler;  // has the tokens of the request, those of the prompt included
  std::optional<StreamDecoder> text{};
  StopStrings stops;
  std::int64_t prompt = 0;     // tokens
  std::int64_t sequence = -1;  // of the model; -1 while it waits
  bool cancelled = false;

  std::int64_t size() const { return static_cast<std::int64_t>(sampler.sequence().size()); }
};

}  // namespace

struct Engine::Impl {
  DecoderModel model;
  std::shared_ptr<const Tokenizer> tokenizer;
  EngineOptions options;
  BatchConstructor batches;
  std::optional<PrefixCache> prefixes{};
  std::list<Request> requests{};    // in order of arrival
  std::vector<Request*> running{};  // by sequence
  EngineStatistics statistics{};
  RequestId next_id = 1;

  Impl(DecoderModel m, std::shared_ptr<const Tokenizer> t, const EngineOptions& o)
      : model(std::move(m)),
        tokenizer(std::move(t)),
        options(o),
        batches(o.max_batch_tokens ? std::min(o.max_batch_tokens, model.max_tokens()) : model.max_tokens(),
                model.cache().sequences()) {
    if (options.prefix_cache) prefixes.emplace(model.cache().pool());
    running.resize(static_cast<std::size_t>(model.cache().sequences()));
  }

  // -- sequences of the model --

  // Pages that nobody runs with make room before anybody waits.
  bool make_room(std::int64_t pages) {
    const std::int64_t missing = pages - model.cache().free_pages();
    return missing <= 0 || (prefixes && prefixes->evict(missing) == missing);
  }
  std::int64_t pages_for(const Request& r, std::int64_t tokens) const {
    const KvCache& cache = model.cache();
    const std::int64_t held = r.sequence < 0 ? 0 : static_cast<std::int64_t>(cache.table(r.sequence).size());
    return std::max<std::int64_t>(0, (tokens + cache.page() - 1) / cache.page() - held);
  }

  // Gives a sequence to each request that waits, as long as there are any and their pages.
  void admit() {
    for (Request& r : requests) {
      if (r.sequence >= 0 || r.cancelled) continue;
      const auto free = std::find(running.begin(), running.end(), nullptr);
      if (free == running.end()) return;
      const std::int64_t sequence = free - running.begin();
      PrefixMatch match;
      if (prefixes) match = prefixes->match_prefix(r.sampler.sequence());
      if (match.partial >= 0)
        model.cache().pool().release(match.partial);  // computing some tokens again is less than a copy
      model.cache().adopt(sequence, match.pages);
      r.sequence = sequence;
      const bool alone = std::all_of(running.begin(), running.end(), [](const Request* other) { return !other; });
      if (!make_room(pages_for(r, r.size())) && !alone) {  // alone, it has all there is: the run says what is missing
        model.cache().truncate(sequence, 0);
        r.sequence = -1;
        return;
      }
      *free = &r;
      statistics.reused_tokens += match.tokens;
    }
  }

  // Takes the sequence from a request. What was computed stays for those that begin alike.
  void leave(Request& r, bool keep) {
    if (r.sequence < 0) return;
    KvCache& cache = model.cache();
    const auto computed = static_cast<std::size_t>(cache.length(r.sequence));
    if (keep && prefixes) prefixes->insert(r.sampler.sequence().first(computed), cache.table(r.sequence));
    cache.truncate(r.sequence, 0);
    running[static_cast<std::size_t>(r.sequence)] = nullptr;
    r.sequence = -1;
  }

  // -- a step --

  struct Chosen {
    std::vector<Request*> requests;
    std::vector<SequenceTokens> parts;
    std::vector<bool> whole;
  };
  // Requests that answer first, then prompts, each in order of arrival. Where pages are missing the youngest leaves.
  Chosen choose() {
    while (true) {
      std::deque<BatchRequest> decode, prefill;
      for (const Request& r : requests) {
        if (r.sequence < 0 || r.cancelled) continue;
        const std::int64_t done = model.cache().length(r.sequence), left = r.size() - done;
        (left == 1 && r.size() > r.prompt ? decode : prefill).push_back({r.id, left, done});
      }
      Chosen chosen;
      std::int64_t pages = 0;
      for (const BatchEntry& e : batches.build(decode, prefill)) {
        Request& r = *find(e.id);
        pages += pages_for(r, e.cached + e.query);
        chosen.requests.push_back(&r);
        chosen.parts.push_back({r.sequence, r.sampler.sequence().subspan(static_cast<std::size_t>(e.cached),
                                                                         static_cast<std::size_t>(e.query))});
        chosen.whole.push_back(e.whole);
      }
      const auto holding = std::count_if(running.begin(), running.end(), [](const Request* r) { return r != nullptr; });
      if (make_room(pages) || holding < 2) return chosen;
      const auto youngest =
          std::find_if(requests.rbegin(), requests.rend(), [](const Request& r) { return r.sequence >= 0; });
      leave(*youngest, false);
      ++statistics.preemptions;
    }
  }

  Request* find(RequestId id) {
    const auto at = std::find_if(requests.begin(), requests.end(), [&](const Request& r) { return r.id == id; });
    return at == requests.end() ? nullptr : &*at;
  }

  void finish(Request& r, GenerationEvent& e, FinishReason reason) {
    e.finish = reason;
    if (r.text && !r.stops.found()) {
      e.text += r.stops.push(r.text->flush());
      e.text += r.stops.found() ? std::string() : r.stops.flush();
    }
    leave(r, true);
  }

  GenerationEvent next_token(Request& r, std::span<const float> logits) {
    GenerationEvent e{r.id, r.sampler.draw(logits), {}, FinishReason::None};
    r.sampler.accept(e.token);
    ++statistics.generated_tokens;
    const auto& ends = r.options.stop_tokens;
    if (std::find(ends.begin(), ends.end(), e.token) != ends.end()) {
      finish(r, e, FinishReason::StopToken);
      return e;
    }
    if (r.text) e.text = r.stops.push(r.text->push(e.token));
    if (r.stops.found())
      finish(r, e, FinishReason::StopString);
    else if (r.options.max_new_tokens != 0 && r.size() - r.prompt >= r.options.max_new_tokens)
      finish(r, e, FinishReason::MaxTokens);
    else if (r.size() >= model.context())
      finish(r, e, FinishReason::ContextFull);
    return e;
  }

  std::vector<GenerationEvent> step() {
    std::vector<GenerationEvent> events;
    for (Request& r : requests) {
      if (!r.cancelled) continue;
      GenerationEvent e{r.id, -1, {}, FinishReason::None};
      finish(r, e, FinishReason::Cancelled);
      events.push_back(std::move(e));
    }
    requests.remove_if([](const Request& r) { return r.cancelled; });
    admit();
    const Chosen chosen = choose();
    if (!chosen.parts.empty()) {
      const Tensor logits = model.forward(chosen.parts, LogitRows::Last);
      ++statistics.runs;
      const auto vocab = static_cast<std::size_t>(model.config().vocab_size);
      std::vector<RequestId> done;
      for (std::size_t i = 0; i < chosen.requests.size(); ++i) {
        Request& r = *chosen.requests[i];
        if (r.size() == r.prompt) statistics.prompt_tokens += static_cast<std::int64_t>(chosen.parts[i].tokens.size());
        if (!chosen.whole[i]) continue;
        events.push_back(next_token(r, logits.values<float>().subspan(i * vocab, vocab)));
        if (events.back().finish != FinishReason::None) done.push_back(r.id);
      }
      requests.remove_if([&](const Request& r) { return std::find(done.begin(), done.end(), r.id) != done.end(); });
    }
    return events;
  }
};

Engine::Engine(DecoderModel model, std::shared_ptr<const Tokenizer> tokenizer, EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(tokenizer), options)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::Impl& Engine::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "an Engine was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}

RequestId Engine::submit(std::span<const TokenId> prompt, const GenerationOptions& options) {
  Impl& e = impl();
  const auto refuse = [](std::string message, std::string hint = {}) {
    throw Error(ErrorCode::InvalidArgument, std::move(message), std::move(hint));
  };
  const auto size = static_cast<std::int64_t>(prompt.size());
  if (size == 0) refuse("a prompt has no tokens", "begin with the tokeniser's begin-of-text token");
  for (std::size_t i = 0; i < prompt.size(); ++i)
    if (prompt[i] < 0 || prompt[i] >= e.model.config().vocab_size)
      refuse(concat_text("token ", i, " of the prompt is ", prompt[i], ", but the model has ids 0 to ",
                         e.model.config().vocab_size - 1),
             "the tokeniser belongs to another model");
  if (size >= e.model.context())
    refuse(
        concat_text("a prompt of ", size, " tokens leaves no room for an answer in a context of ", e.model.context()),
        "shorten it, or load the model with a larger context");
  if (options.max_new_tokens < 0)
    refuse(concat_text("max_new_tokens is ", options.max_new_tokens), "0 means until the context is full");
  if (!e.tokenizer && !options.stop.empty()) refuse("stop strings need a tokeniser");
  Request r{e.next_id, options, Sampler(options.sampling), std::nullopt, StopStrings(options.stop), size};
  if (e.tokenizer) r.text.emplace(*e.tokenizer);
  r.sampler.accept(prompt);
  e.requests.push_back(std::move(r));
  return e.next_id++;
}

bool Engine::cancel(RequestId request) {
  Request* r = impl().find(request);
  if (!r || r->cancelled) return false;
  return r->cancelled = true;
}
std::vector<GenerationEvent> Engine::step() { return impl().step(); }
bool Engine::idle() const { return impl().requests.empty(); }
const EngineStatistics& Engine::statistics() const { return impl().statistics; }
const DecoderModel& Engine::model() const { return impl().model; }
const Tokenizer* Engine::tokenizer() const { return impl().tokenizer.get(); }

}  // namespace rlx
