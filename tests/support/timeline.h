// Parsed timelines for tests.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/formats/json.h"

namespace rlx::test {

struct TimelineEvent {
  std::string name, category, value, label;
  std::int64_t begin = 0, end = 0;  // ns
  std::pair<std::int64_t, std::int64_t> track;
};

// The events of a trace, sorted by begin. Checks that every event has the documented form.
inline std::vector<TimelineEvent> events_of(const std::string& json) {
  const JsonDocument document = JsonDocument::parse(json, "trace");
  CHECK(document.root().get_string("displayTimeUnit") == "ns");
  std::vector<TimelineEvent> out;
  std::set<std::pair<std::int64_t, std::int64_t>> named;
  for (JsonValue e : document.root().at("traceEvents").elements("events")) {
    const std::pair track{e.get_int("pid"), e.get_int("tid")};
    if (e.get_string("ph") == "M") {
      CHECK(!e.at("args").get_string("name").empty());
      if (e.get_string("name") == "thread_name") named.insert(track);
      continue;
    }
    REQUIRE(e.get_string("ph") == "X");
    TimelineEvent event;
    event.name = e.get_string("name");
    event.category = e.get_string("cat");
    const auto ns = [&](const char* key) { return std::int64_t(e.get_number(key) * 1000 + 0.5); };
    event.begin = ns("ts");
    event.end = event.begin + ns("dur");
    CHECK(event.begin >= 0);
    CHECK(event.end >= event.begin);
    event.track = track;
    CHECK(named.contains(track));
    if (const auto args = e.find("args")) {
      event.value = args->get_string("value", "");
      event.label = args->get_string("label", "");
    }
    out.push_back(event);
  }
  std::stable_sort(out.begin(), out.end(), [](const TimelineEvent& a, const TimelineEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return out;
}

// Checks that events of one thread are nested or disjoint.
inline void check_nesting(const std::vector<TimelineEvent>& events) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const TimelineEvent*>> open;
  for (const TimelineEvent& e : events) {
    std::vector<const TimelineEvent*>& stack = open[e.track];
    while (!stack.empty() && stack.back()->end <= e.begin) stack.pop_back();
    if (!stack.empty())
      CHECK_MESSAGE(e.end <= stack.back()->end, e.name, " begins in ", stack.back()->name, " and ends behind it");
    stack.push_back(&e);
  }
}

inline std::size_t count_events(const std::vector<TimelineEvent>& events, const std::string& category,
                                const std::string& name = {}) {
  return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [&](const TimelineEvent& e) {
    return e.category == category && (name.empty() || e.name == name);
  }));
}

}  // namespace rlx::test
