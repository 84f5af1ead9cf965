// Which image goes with which request: drawn before the run from a second seeded stream.
import { uniform } from './arrivals.js';

/**
 * What may be mixed. `large`, `hostile`: share of requests. `popular`: share that goes to the few popular images.
 * `repeats`: bytes come again as they are; otherwise every upload differs, so that no cache can answer it.
 */
export const MIXES = {
  distinct: { large: 0, hostile: 0, popular: 0, repeats: false },
  // One photo in fifty straight from a phone: they triple p99 where they are not priced.
  '12mp': { large: 0.02, hostile: 0, popular: 0, repeats: false },
  // One in ten wants to do harm: enough to see what it costs the others.
  hostile: { large: 0, hostile: 0.1, popular: 0, repeats: false },
  // Four in five requests are for a tenth of the images, the shape of most public traffic.
  repeats: { large: 0, hostile: 0, popular: 0.8, repeats: true },
};
const POPULAR_SHARE = 0.1;
// Another stream than that of the arrivals, or a long gap would always bring the same image.
const OTHER_STREAM = 0x9e3779b9;

/** Index into `kinds` (the kind of each image) for each of `count` requests. */
export function draw(count, mixName, kinds, seed) {
  const mix = MIXES[mixName];
  if (!mix) {
    throw new Error(`MIX must be one of ${Object.keys(MIXES).join(', ')}, not "${mixName}"`);
  }
  const of = (kind) => kinds.map((each, index) => (each === kind ? index : -1)).filter((index) => index >= 0);
  const images = { ordinary: of('ordinary'), large: of('large'), hostile: of('hostile') };
  for (const kind of ['ordinary', ...(mix.large ? ['large'] : []), ...(mix.hostile ? ['hostile'] : [])]) {
    if (images[kind].length === 0) {
      throw new Error(`the mix "${mixName}" needs ${kind} images, and the set has none`);
    }
  }
  const popular = images.ordinary.slice(0, Math.ceil(images.ordinary.length * POPULAR_SHARE));
  const next = uniform((seed ^ OTHER_STREAM) >>> 0);
  const pick = (from) => from[Math.floor(next() * from.length)];
  return Array.from({ length: count }, () => {
    const chance = next();
    if (chance < mix.large) {
      return pick(images.large);
    }
    if (chance < mix.large + mix.hostile) {
      return pick(images.hostile);
    }
    return pick(chance < mix.popular ? popular : images.ordinary);
  });
}
