// Traces: each thread records events into its own list. They are written on request and at exit.
#include "rlx/base/trace.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rlx/base/forks.h"
#include "rlx/base/json_writer.h"
#include "rlx/base/output_file.h"
#include "rlx/error.h"

namespace rlx {
namespace {

struct TraceEvent {
  std::int64_t begin;
  std::atomic<std::int64_t> end;
  std::uint32_t name, track;
};

constexpr std::uint32_t kChunk = 2048;
constexpr std::size_t kMostEvents = std::size_t{4} << 20;  // per thread

// The owning thread writes `events` and then `count`. The writer of the file reads `count` first.
struct TraceChunk {
  std::atomic<std::uint32_t> count{0};
  std::atomic<TraceChunk*> next{nullptr};
  std::array<TraceEvent, kChunk> events;
};

struct ThreadLog {
  int number = 0;
  std::string name;
  TraceChunk first;
  TraceChunk* last = &first;  // used by the owning thread only
  std::size_t recorded = 0;   // used by the owning thread only
  std::atomic<std::size_t> lost{0};
  ~ThreadLog() {
    for (TraceChunk* c = first.next; c;) delete std::exchange(c, c->next.load());
  }
};

// Guards the state that threads share, for all traces: names, lists of logs, the set of traces. Never destroyed,
// because exit() writes traces later. A fork holds the lock, so that the child gets a consistent state.
struct Shared {
  ProcessMutex mutex;
  std::set<Trace*> written_at_exit;
  std::atomic<std::uint32_t> forks{0};
  std::uint64_t next_serial = 1;
};
void write_at_exit();
Shared& shared() {
  static Shared* const s = [] {
    static Shared* made = new Shared;
    pthread_atfork(nullptr, nullptr, [] { made->forks.fetch_add(1, std::memory_order_relaxed); });
    std::atexit(write_at_exit);
    return made;
  }();
  return *s;
}

// The logs of the traces that a thread recorded into most recently.
struct KnownLog {
  std::uint64_t serial = 0;
  std::uint32_t forks = 0;
  ThreadLog* log = nullptr;
};
thread_local std::array<KnownLog, 4> t_logs;
thread_local unsigned t_next_log = 0;
thread_local Trace* t_current = nullptr;

}  // namespace

struct Trace::Impl {
  std::string path;
  std::uint64_t serial = 0;
  std::int64_t start = now_ns();
  pid_t process = getpid();
  std::optional<std::size_t> written{};                   // number of events in the file
  std::uint32_t forks = 0;                                // Shared::forks when `logs` were created
  std::vector<std::unique_ptr<ThreadLog>> logs, parents;  // parents: those of the process before a fork
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::vector<std::string> names{""};  // as members of an event
  std::vector<std::string> tracks{""};

  // In a child process: the parent writes the events that it recorded.
  void begin_after_fork() {
    if (forks == shared().forks.load(std::memory_order_relaxed)) return;
    forks = shared().forks.load(std::memory_order_relaxed);
    for (auto& log : logs) parents.push_back(std::move(log));
    logs.clear();
  }

  ThreadLog* new_log() {
    std::lock_guard lock(shared().mutex);
    begin_after_fork();
    logs.push_back(std::make_unique<ThreadLog>());
    logs.back()->number = static_cast<int>(logs.size());
    return logs.back().get();
  }

  ThreadLog& log() {
    const std::uint32_t now = shared().forks.load(std::memory_order_relaxed);
    for (const KnownLog& known : t_logs)
      if (known.serial == serial && known.forks == now) return *known.log;
    KnownLog& place = t_logs[t_next_log++ % t_logs.size()];
    place = {serial, now, new_log()};
    return *place.log;
  }

  // The number of events of this process.
  std::size_t size() const {
    std::lock_guard lock(shared().mutex);
    std::size_t n = 0;
    if (forks != shared().forks.load(std::memory_order_relaxed)) return n;  // all are its parent's
    for (const auto& log : logs)
      for (const TraceChunk* c = &log->first; c; c = c->next.load(std::memory_order_acquire)) n += c->count;
    return n;
  }
  std::string file() const { return getpid() == process ? path : concat_text(path, ".", getpid()); }
  std::string json() const;
};

Trace::Trace() : impl_(std::make_unique<Impl>()) {
  std::lock_guard lock(shared().mutex);
  impl_->serial = shared().next_serial++;
  impl_->forks = shared().forks;
}

Trace::Trace(std::string path) : Trace() {
  try {
    OutputFile check_only(path);  // keeps the content until events are written
  } catch (const Error& e) {
    throw Error(ErrorCode::BadFile, concat_text("a trace cannot be written: ", e.diagnostic().message),
                "name a file in an existing folder that can be written to");
  }
  impl_->path = std::move(path);
  std::lock_guard lock(shared().mutex);
  shared().written_at_exit.insert(this);
}

namespace {
// Writes the traces that are still alive. Nobody destroys one meanwhile, as exit() requires for all objects.
void write_at_exit() {
  std::set<Trace*> traces;
  {
    std::lock_guard lock(shared().mutex);
    traces.swap(shared().written_at_exit);
  }
  for (Trace* trace : traces) trace->flush_rest();
}
}  // namespace

Trace::~Trace() {
  if (impl_->path.empty()) return;
  {
    std::lock_guard lock(shared().mutex);
    if (shared().written_at_exit.erase(this) == 0) return;  // exit() has written it
  }
  flush_rest();
}

void Trace::flush() {
  const std::size_t size = impl_->size();
  if (impl_->path.empty() || (getpid() != impl_->process && size == 0)) return;
  const std::string text = impl_->json();
  const std::string_view part = text;
  try {
    replace_file(impl_->file(), std::span(&part, 1));
  } catch (const Error& e) {
    throw Error(ErrorCode::BadFile, concat_text("the trace cannot be written: ", e.diagnostic().message),
                "name a path on a disk with free space");
  }
  impl_->written = size;
}

void Trace::flush_rest() noexcept try {
  if (impl_->written != impl_->size()) flush();
} catch (const std::exception& e) {
  std::fprintf(stderr, "rlx: warning: %s\n", e.what());
}

std::string Trace::json() const { return impl_->json(); }
std::uint64_t Trace::serial() const { return impl_->serial; }

std::uint32_t Trace::name(std::string_view category, std::string_view text, std::string_view args) {
  JsonWriter writer(kHtmlJson);
  writer.member("name", text).member("cat", category);
  if (!args.empty()) writer.key("args").begin_object().raw(args).end_object();
  std::string members = writer.take();
  std::lock_guard lock(shared().mutex);
  const auto [at, is_new] = impl_->numbers.try_emplace(members, static_cast<std::uint32_t>(impl_->names.size()));
  if (is_new) impl_->names.push_back(std::move(members));
  return at->second;
}

std::uint32_t Trace::track(std::string_view device) {
  std::lock_guard lock(shared().mutex);
  const auto at = std::find(impl_->tracks.begin() + 1, impl_->tracks.end(), device);
  const auto number = static_cast<std::uint32_t>(at - impl_->tracks.begin());
  if (at == impl_->tracks.end()) impl_->tracks.emplace_back(device);
  return number;
}

std::atomic<std::int64_t>* Trace::record(std::uint32_t name, std::int64_t begin, std::int64_t end,
                                         std::uint32_t track) noexcept try {
  ThreadLog& log = impl_->log();
  if (log.recorded >= kMostEvents) {
    log.lost.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  std::uint32_t count = log.last->count.load(std::memory_order_relaxed);
  if (count == kChunk) {
    auto* const more = new TraceChunk;
    log.last->next.store(more, std::memory_order_release);
    log.last = more;
    count = 0;
  }
  TraceEvent& event = log.last->events[count];
  event.begin = begin, event.name = name, event.track = track;
  event.end.store(end, std::memory_order_relaxed);
  log.last->count.store(count + 1, std::memory_order_release);
  ++log.recorded;
  return &event.end;
} catch (const std::bad_alloc&) {  // the run continues without its event
  return nullptr;
}

void Trace::name_thread(std::string_view text) {
  ThreadLog& log = impl_->log();
  std::lock_guard lock(shared().mutex);
  if (log.name.empty()) log.name = text;
}

std::int64_t Trace::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Trace* Trace::current() noexcept { return t_current; }

Trace* TraceScope::exchange(Trace* trace) noexcept { return std::exchange(t_current, trace); }

void TraceSpan::begin(std::string_view category, std::string_view text, std::string_view detail) noexcept try {
  JsonWriter args(kHtmlJson);
  if (!detail.empty()) args.member("of", detail);
  name_ = trace_->name(category, text, args.take());
  begin_ = Trace::now_ns();
} catch (const std::bad_alloc&) {
  trace_ = nullptr;
}

std::string Trace::Impl::json() const {
  std::lock_guard lock(shared().mutex);
  const int process_id = getpid();
  // Devices other than the host appear as separate processes.
  const auto pid = [&](std::uint32_t track) {
    return track == 0 ? process_id : process_id * 64 + static_cast<int>(track);
  };
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  bool first = true;
  const auto event = [&](const auto&... parts) {
    out += first ? "\n" : ",\n";
    first = false;
    (out.append(parts), ...);
  };
  const auto metadata = [&](const char* what, int of, int thread, const std::string& name) {
    JsonWriter writer(kHtmlJson);
    writer.begin_object().member("ph", "M").member("name", what).member("pid", of).member("tid", thread);
    writer.key("args").begin_object().member("name", name).end_object();
    event(writer.end_object().take());
  };
  metadata("process_name", process_id, 0, "rlx");
  for (std::uint32_t t = 1; t < tracks.size(); ++t)
    metadata("process_name", pid(t), 0, concat_text("device ", tracks[t]));
  if (forks != shared().forks.load(std::memory_order_relaxed)) return out + "\n]}\n";  // all events are the parent's
  for (const auto& log : logs) {
    std::string name = log->name.empty() ? concat_text("thread ", log->number) : log->name;
    if (const std::size_t lost = log->lost) name += concat_text(" (", lost, " events lost)");
    metadata("thread_name", process_id, log->number, name);
    std::vector<bool> named(tracks.size(), false);
    for (const TraceChunk* c = &log->first; c; c = c->next.load(std::memory_order_acquire)) {
      const std::uint32_t count = c->count.load(std::memory_order_acquire);
      for (std::uint32_t i = 0; i < count; ++i) {
        const TraceEvent& e = c->events[i];
        if (e.track != 0 && !named[e.track]) {
          named[e.track] = true;
          metadata("thread_name", pid(e.track), log->number, name);
        }
        char times[96];
        std::snprintf(times, sizeof times, "{\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d,",
                      static_cast<double>(e.begin - start) * 1e-3,
                      static_cast<double>(e.end.load(std::memory_order_relaxed) - e.begin) * 1e-3, pid(e.track),
                      log->number);
        event(times, names[e.name], "}");
      }
    }
  }
  return out + "\n]}\n";
}

}  // namespace rlx
