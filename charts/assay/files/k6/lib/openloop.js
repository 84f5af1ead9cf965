// The open loop: each iteration waits for its own due time, and its latency counts from there.
import exec from 'k6/execution';
import { sleep } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';

/** A sender that is late by more than this did not keep the schedule. */
export const LATE_MS = 20;
/** More than this share of late senders, and the run did not measure what it was to measure. */
export const LATE_SHARE = 0.001;
/** But one may always be: of less than a thousand requests, one tells nothing of a share of one in a thousand. */
export const LATE_ALWAYS = 1;
// Senders get ready before the first request is due.
const LEAD_MS = 500;
// k6 holds about half a megabyte for a sender: beyond this the generator would be what is measured.
export const MAX_SENDERS = 600;

export const latency = new Trend('latency_from_intended', true);
export const late = new Rate('late_arrivals');
// Late because every sender still waited for an answer. The other late ones had no CPU to wake up on.
export const unattended = new Counter('unattended_arrivals');

/** Most arrivals within any span of so many seconds: requests in flight if none is answered before. */
export function mostWithin(times, seconds) {
  let most = 0;
  for (let first = 0, last = 0; last < times.length; last += 1) {
    while (times[last] - times[first] > seconds) {
      first += 1;
    }
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Options of a run that sends every arrival exactly once. */
export function options(times, senders) {
  return {
    scenarios: {
      arrivals: {
        executor: 'shared-iterations',
        vus: Math.min(senders, times.length),
        iterations: times.length,
        maxDuration: `${Math.ceil(times[times.length - 1]) + 120}s`,
      },
    },
    // Only what the summary uses: every further tag costs CPU with each request.
    systemTags: ['status'],
    summaryTrendStats: ['avg', 'med', 'p(95)', 'p(99)', 'max', 'count'],
  };
}

/** Wait until this iteration is due; `send(index, due)`, due in epoch ms; account for the time from then. */
export function onTime(times, send) {
  const { index, due } = waitUntilDue(times);
  send(index, due);
  latency.add(Date.now() - due);
}

/** Wait until this iteration is due: its index, when that was in epoch ms, and whether it was kept. */
export function waitUntilDue(times) {
  const index = exec.scenario.iterationInTest;
  const due = exec.scenario.startTime + LEAD_MS + times[index] * 1000;
  const wait = due - Date.now();
  if (wait > 0) {
    sleep(wait / 1000);
  }
  const isLate = Date.now() - due > LATE_MS;
  late.add(isLate);
  if (wait < -LATE_MS) {
    unattended.add(1);
  }
  return { index, due };
}
