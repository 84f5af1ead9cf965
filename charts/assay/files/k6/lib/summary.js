// What a run found: one object made of k6's metrics, and as text, as a line for a termination message, as JSON.
import { FAULTS, STAGES, STATUSES } from './client.js';
import { BINS, SLOTS } from './thresholds.js';

// What Kubernetes keeps of a termination message is 4096 bytes; reasons are cut so that the line stays far below.
const MAX_REASONS = 5;
const MAX_REASON = 300;

const values = (data, name) => (data.metrics[name] ? data.metrics[name].values : {});
const count = (data, name) => values(data, name).count || 0;

function trend(data, name) {
  const found = values(data, name);
  return {
    count: found.count || 0,
    mean: found.avg || 0,
    p50: found.med || 0,
    p95: found['p(95)'] || 0,
    p99: found['p(99)'] || 0,
    max: found.max || 0,
  };
}

const rounded = (value) => Math.round(value * 1000) / 1000;

function roundedAll(object) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, rounded(value)]));
}

/** The object that everything else is made of. `plan`: scenario, config, phases, times and senders of the run. */
export function collect(data, plan) {
  const range = (length) => Array.from({ length }, (_, index) => index);
  const present = (names, metric, tag) =>
    Object.fromEntries(
      names.map((name) => [name, count(data, `${metric}{${tag}:${name}}`)]).filter(([, number]) => number > 0),
    );
  const started = values(data, 'late_arrivals');
  const phases = Object.fromEntries(
    plan.phases.map(({ name }) => [name, roundedAll(trend(data, `latency_right{phase:${name}}`))]),
  );
  phases.all = roundedAll(trend(data, 'latency_right'));
  return {
    scenario: plan.scenario,
    mix: plan.config.mix,
    url: plan.config.url,
    seed: plan.config.seed,
    plan: plan.phases.map(({ name, rate, seconds }) => ({ name, rate, seconds })),
    seconds: plan.seconds,
    planned: plan.times.length,
    started: (started.passes || 0) + (started.fails || 0),
    senders: plan.senders,
    lateShare: started.rate || 0,
    unattended: count(data, 'unattended_arrivals'),
    refused: count(data, 'allowed_refusals'),
    statuses: present(STATUSES, 'answers', 'status'),
    faults: present(FAULTS, 'wrong_answers', 'fault'),
    latencyMs: roundedAll(trend(data, 'latency_from_intended')),
    phases,
    kinds: Object.fromEntries(
      ['ordinary', 'large', 'hostile']
        .map((kind) => [kind, roundedAll(trend(data, `latency_kind{kind:${kind}}`))])
        .filter(([, found]) => found.count > 0),
    ),
    stages: Object.fromEntries(
      STAGES.map((stage) => [stage, rounded(trend(data, `stage_time{stage:${stage}}`).mean)]).filter(([, ms]) => ms > 0),
    ),
    slots: range(SLOTS).map((slot) => ({
      sent: count(data, `sent{slot:${slot}}`),
      notRight: count(data, `not_right{slot:${slot}}`),
      ...roundedAll(trend(data, `latency_right{slot:${slot}}`)),
    })),
    bins: { edges: BINS.map(rounded), counts: range(BINS.length + 1).map((bin) => count(data, `latency_bin{bin:${bin}}`)) },
    model: data.setup_data || null,
  };
}

const ms = (value) => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
const quantiles = (found) => `p50 ${ms(found.p50)}, p95 ${ms(found.p95)}, p99 ${ms(found.p99)}, max ${ms(found.max)}`;

/** A few lines for a person. */
export function text(run) {
  const lines = [`${run.verdict.toUpperCase()}  ${run.scenario}, mix ${run.mix}, ${run.url}`];
  for (const reason of run.reasons) {
    lines.push(`  - ${reason}`);
  }
  if (run.model) {
    const { name, precision, digest, workers, cpu_limit_millicores: limit, cpu_features: features } = run.model;
    lines.push(`  model      ${name} ${precision}, ${(digest || '').slice(0, 19)}`);
    lines.push(`  server     ${workers} workers, CPU limit ${limit}m, ${(features || []).join(' ')}`);
  }
  const plan = run.plan.map(({ name, rate, seconds }) => `${name} ${rate}/s for ${seconds} s`).join(', ');
  lines.push(`  plan       ${plan}; Poisson, seed ${run.seed}`);
  lines.push(
    `  sent       ${run.started} of ${run.planned} (${(run.started / run.seconds).toFixed(1)}/s), ` +
      `${(run.lateShare * 100).toFixed(2)} % late, ${run.senders} senders`,
  );
  const statuses = Object.entries(run.statuses).map(([status, number]) => `${status === '0' ? 'none' : status}: ${number}`);
  lines.push(`  answers    ${statuses.join(', ')}`);
  lines.push(`  latency    ${quantiles(run.phases.all)}  (ordinary photos, from the time each was due)`);
  if (run.plan.length > 1) {
    for (const { name } of run.plan) {
      lines.push(`    ${name.padEnd(8)} ${quantiles(run.phases[name])}`);
    }
  }
  for (const [kind, found] of Object.entries(run.kinds)) {
    if (kind !== 'ordinary') {
      lines.push(`    ${kind.padEnd(8)} ${quantiles(found)}`);
    }
  }
  const stages = Object.entries(run.stages).map(([stage, mean]) => `${stage} ${mean.toFixed(1)}`);
  if (stages.length > 0) {
    lines.push(`  stages     ${stages.join(', ')}  (mean ms, by the service)`);
  }
  if (run.probes) {
    for (const { rate, verdict, p50, p99 } of run.probes) {
      lines.push(`  probe      ${String(rate).padStart(6)}/s  ${verdict.padEnd(7)}  p50 ${ms(p50)}, p99 ${ms(p99)}`);
    }
    const { low, high } = run.ceiling;
    lines.push(`  ceiling    ${low} to ${high === null ? 'unknown' : high} req/s at p99 within ${run.p99LimitMs} ms`);
  }
  return `${lines.join('\n')}\n`;
}

/** One JSON line, below 4096 bytes, for the termination message and as the log's last line. */
export function line(run) {
  const { verdict, scenario, mix, planned, started, lateShare, phases, statuses, faults, refused } = run;
  const wrongLabels = Object.entries(faults).filter(([name]) => name !== 'status' && name !== 'no answer');
  const failed = (faults['no answer'] || 0) + (faults.status || 0);
  return JSON.stringify({
    verdict,
    reasons: run.reasons.slice(0, MAX_REASONS).map((reason) => reason.slice(0, MAX_REASON)),
    scenario,
    mix,
    planned,
    requests: started,
    failed,
    checksFailed: failed + wrongLabels.reduce((sum, [, number]) => sum + number, 0),
    refused,
    statuses,
    lateShare,
    latencyMs: phases.all,
    ...(run.ceiling ? { ceiling: run.ceiling, p99LimitMs: run.p99LimitMs } : {}),
    model: run.model ? { name: run.model.name, precision: run.model.precision, digest: run.model.digest } : null,
  });
}
