// Reads the events of a trace.
#include "rlx/formats/thread_times.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "rlx/error.h"
#include "rlx/formats/json.h"

namespace rlx {
namespace {

struct Span {
  double begin = 0, end = 0;  // us
  std::string op, kernel;     // of a step; empty for a run
  bool run = false;
};

// The events of each thread in the order in which they began, an outer one before those inside of it.
struct Spans {
  std::map<std::int64_t, std::string> names;
  std::map<std::int64_t, std::vector<Span>> of;

  explicit Spans(const Trace& trace) {
    const JsonDocument document = JsonDocument::parse(trace.json(), "trace");
    for (const JsonValue& e : document.root().at("traceEvents").elements("traceEvents")) {
      const std::int64_t thread = e.get_int("tid");
      if (e.get_string("ph") == "M") {
        if (e.get_string("name") == "thread_name") names.emplace(thread, e.at("args").get_string("name"));
        continue;
      }
      const std::string_view category = e.get_string("cat", "");
      if (category != "step" && category != "run") continue;
      Span event;
      event.begin = e.get_number("ts"), event.end = event.begin + e.get_number("dur");
      event.run = category == "run";
      if (const auto args = e.find("args"); args && !event.run)
        event.op = e.get_string("name"), event.kernel = args->get_string("kernel", "");
      of[thread].push_back(std::move(event));
    }
    for (auto& [thread, list] : of)
      std::stable_sort(list.begin(), list.end(), [](const Span& a, const Span& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
  }
};

// Adds the steps of one thread, each without the steps inside of it.
void add_steps(const std::vector<Span>& events, ThreadTimes& to) {
  std::map<std::pair<std::string, std::string>, ThreadTimes::Kernel> kernels;
  std::vector<std::pair<const Span*, double>> open;  // with the us of the steps inside
  const auto close = [&] {
    const auto [e, inside] = open.back();
    open.pop_back();
    const double us = e->end - e->begin;
    if (!open.empty()) open.back().second += us;
    if (e->run) return;
    ThreadTimes::Kernel& k =
        kernels.try_emplace({e->op, e->kernel}, ThreadTimes::Kernel{e->op, e->kernel}).first->second;
    k.ms += (us - inside) / 1e3, ++k.pieces;
    to.busy_ms += (us - inside) / 1e3;
  };
  for (const Span& e : events) {
    while (!open.empty() && open.back().first->end <= e.begin) close();
    open.emplace_back(&e, 0);
  }
  while (!open.empty()) close();
  for (auto& [key, kernel] : kernels) to.kernels.push_back(std::move(kernel));
  std::stable_sort(to.kernels.begin(), to.kernels.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
}

// The ms of outermost runs.
double run_ms(const std::vector<Span>& events) {
  double sum = 0, until = -1;
  for (const Span& e : events)
    if (e.run && e.begin >= until) sum += (e.end - e.begin) / 1e3, until = e.end;
  return sum;
}

}  // namespace

std::vector<ThreadTimes> thread_times(const Trace& trace) {
  const Spans spans(trace);
  double all = 0;
  std::vector<std::pair<double, ThreadTimes>> threads;  // with the begin of its first step
  for (const auto& [thread, list] : spans.of) {
    const double runs = run_ms(list);
    all += runs;
    const auto first = std::find_if(list.begin(), list.end(), [](const Span& e) { return !e.run; });
    if (first == list.end()) continue;
    const auto name = spans.names.find(thread);
    auto& times = threads.emplace_back(first->begin, ThreadTimes()).second;
    times.thread = name == spans.names.end() ? concat_text("thread ", thread) : name->second;
    if (runs > 0 && times.thread.starts_with("thread ")) times.thread = "caller";
    add_steps(list, times);
  }
  std::stable_sort(threads.begin(), threads.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ThreadTimes> out;
  for (auto& [begin, times] : threads) {
    times.waiting_ms = std::max(0.0, all - times.busy_ms);
    out.push_back(std::move(times));
  }
  return out;
}

std::string thread_times_text(const std::vector<ThreadTimes>& threads, int runs) {
  if (threads.empty()) return {};
  const double share = 1.0 / std::max(1, runs), all = (threads[0].busy_ms + threads[0].waiting_ms) * share;
  std::map<std::pair<std::string, std::string>, std::vector<double>> rows;
  for (std::size_t t = 0; t < threads.size(); ++t)
    for (const ThreadTimes::Kernel& k : threads[t].kernels)
      rows.try_emplace({k.op, k.kernel}, threads.size()).first->second[t] = k.ms * share;
  std::vector<std::pair<std::string, std::vector<double>>> sorted;
  for (auto& [name, ms] : rows)
    if (*std::max_element(ms.begin(), ms.end()) >= all / 100)
      sorted.emplace_back(name.second.empty() ? name.first : concat_text(name.first, "  ", name.second), std::move(ms));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const bool waiting : {false, true}) {
    std::vector<double> ms;
    for (const ThreadTimes& t : threads) ms.push_back((waiting ? t.waiting_ms : t.busy_ms) * share);
    sorted.emplace_back(waiting ? "waiting" : "in kernels", std::move(ms));
  }
  char text[96];
  std::snprintf(text, sizeof text, "%-56s", "ms a run of each thread");
  std::string out = text;
  for (const ThreadTimes& t : threads) std::snprintf(text, sizeof text, " %12.12s", t.thread.c_str()), out += text;
  for (const auto& [name, ms] : sorted) {
    std::snprintf(text, sizeof text, "\n%-56.56s", name.c_str());
    out += text;
    for (const double v : ms) std::snprintf(text, sizeof text, " %12.3f", v), out += text;
  }
  return out + "\n";
}

}  // namespace rlx
