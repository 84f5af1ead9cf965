// What a run is told through the environment, with its defaults.

function number(name, fallback) {
  const text = __ENV[name];
  if (text === undefined || text === '') {
    return fallback;
  }
  const value = Number(text);
  if (!Number.isFinite(value)) {
    throw new Error(`${name} must be a number, not "${text}"`);
  }
  return value;
}

export const config = {
  url: (__ENV.URL || 'http://127.0.0.1:8000').replace(/\/$/, ''),
  rate: number('RATE', 10), // requests per second
  seconds: number('SECONDS', 30),
  seed: number('SEED', 1),
  // An open loop needs a free sender whenever a request is due: rate x the longest answer expected, with a reserve.
  senders: number('SENDERS', 50),
  images: (__ENV.IMAGES || '').split(',').filter((name) => name),
};
