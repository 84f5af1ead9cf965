// The open loop: each iteration waits for its own due time, and its latency counts from there.
import exec from 'k6/execution';
import { sleep } from 'k6';
import { Rate, Trend } from 'k6/metrics';

// A sender that is late by more than this did not keep the schedule; more than 0.1 % of those make a run invalid.
const LATE_MS = 20;
// Senders get ready before the first request is due.
const LEAD_MS = 500;

export const latency = new Trend('latency_from_intended', true);
export const late = new Rate('late_arrivals');

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
    thresholds: { late_arrivals: ['rate<0.001'], checks: ['rate==1'] },
    summaryTrendStats: ['avg', 'med', 'p(95)', 'p(99)', 'max', 'count'],
  };
}

/** Wait until this iteration is due; `send(index, due)`, due in epoch ms; account for the time from then. */
export function onTime(times, send) {
  const index = exec.scenario.iterationInTest;
  const due = exec.scenario.startTime + LEAD_MS + times[index] * 1000;
  const wait = due - Date.now();
  if (wait > 0) {
    sleep(wait / 1000);
  }
  late.add(Date.now() - due > LATE_MS);
  send(index, due);
  latency.add(Date.now() - due);
}
