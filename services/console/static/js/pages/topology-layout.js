// Where everything stands in the drawing. There are two: across for wide pages, down for narrow ones. Lines are given as corners.

export const requestQueues = ['account.transfer-requested', 'account.credit-requested', 'account.refund-requested'];
export const eventsQueue = 'transfer.account-events';
export const errorQueue = (queue) => queue + '_error';

function across() {
  const nodes = {
    transfer: { kind: 'service', x: 12, y: 44, w: 150, h: 352 },
    'banking.events': { kind: 'exchange', x: 232, y: 44, w: 128, h: 222 },
    account: { kind: 'service', x: 718, y: 44, w: 150, h: 222 },
    [eventsQueue]: { kind: 'queue', x: 232, y: 334, w: 226, h: 62 },
    'transfer.retry': { kind: 'exchange', x: 520, y: 338, w: 124, h: 54 },
    retry: { kind: 'queue', x: 706, y: 334, w: 190, h: 62 },
    'banking.dlx': { kind: 'exchange', x: 1000, y: 436, w: 124, h: 48 },
    'banking.dead-letters': { kind: 'parked', x: 948, y: 334, w: 240, h: 62 },
  };
  const edges = [
    edge('requests', [[162, 100], [232, 100]], { at: [197, 90] }),
    edge('answers', [[793, 266], [793, 300], [330, 300], [330, 266]], { at: [570, 293] }),
    edge('events', [[262, 266], [262, 334]], { at: [268, 322], start: true }),
    edge('work/' + eventsQueue, [[232, 365], [162, 365]], { at: [197, 355] }),
    edge('rejected', [[458, 365], [520, 365]], { kind: 'dead', at: [489, 355] }),
    edge('waits', [[644, 365], [706, 365]], { kind: 'dead', at: [675, 355] }),
    edge('returns', [[800, 396], [800, 424], [345, 424], [345, 396]], { kind: 'dead', at: [570, 417] }),
    edge('other deaths', [[582, 392], [582, 460], [1000, 460]], { kind: 'faint' }),
    edge('gives up', [[87, 396], [87, 472], [1000, 472]], { kind: 'dead', at: [340, 465] }),
    edge('parks', [[1062, 436], [1062, 396]], { kind: 'dead', at: [1068, 420], start: true }),
  ];
  requestQueues.forEach((queue, i) => {
    const y = 44 + i * 80;
    nodes[queue] = { kind: 'queue', x: 426, y, w: 226, h: 62 };
    nodes[errorQueue(queue)] = { kind: 'parked', x: 948, y, w: 240, h: 62 };
    edges.push(edge('in/' + queue, [[360, y + 31], [426, y + 31]], { at: [393, y + 21] }));
    edges.push(edge('work/' + queue, [[652, y + 31], [718, y + 31]], { at: [685, y + 21] }));
    edges.push(edge('error/' + queue, [[868, y + 31], [948, y + 31]], { kind: 'dead', at: [908, y + 21] }));
  });
  return { w: 1200, h: 496, nodes, edges, zone: { x: 936, y: 12, w: 264, h: 398 } };
}

function down() {
  const nodes = {
    transfer: { kind: 'service', x: 0, y: 8, w: 346, h: 62 },
    [eventsQueue]: { kind: 'queue', x: 40, y: 104, w: 280, h: 62 },
    'transfer.retry': { kind: 'exchange', x: 40, y: 194, w: 130, h: 44 },
    retry: { kind: 'queue', x: 40, y: 266, w: 280, h: 62 },
    'banking.events': { kind: 'exchange', x: 0, y: 364, w: 346, h: 44 },
    account: { kind: 'service', x: 0, y: 680, w: 346, h: 62 },
    'banking.dlx': { kind: 'exchange', x: 40, y: 1040, w: 130, h: 44 },
    'banking.dead-letters': { kind: 'parked', x: 40, y: 1112, w: 280, h: 62 },
  };
  const edges = [
    edge('requests', [[8, 70], [8, 364]], { at: [14, 352], start: true }),
    edge('work/' + eventsQueue, [[180, 104], [180, 70]], { at: [188, 92], start: true }),
    edge('events', [[24, 364], [24, 135], [40, 135]], {}),
    edge('rejected', [[105, 166], [105, 194]], { kind: 'dead', at: [113, 184], start: true }),
    edge('waits', [[105, 238], [105, 266]], { kind: 'dead', at: [113, 256], start: true }),
    edge('returns', [[320, 297], [334, 297], [334, 135], [320, 135]], { kind: 'dead' }),
    edge('other deaths', [[170, 216], [354, 216], [354, 1056], [170, 1056]], { kind: 'faint' }),
    edge('gives up', [[346, 39], [357, 39], [357, 1068], [170, 1068]], { kind: 'dead', at: [200, 1063], start: true }),
    edge('parks', [[105, 1084], [105, 1112]], { kind: 'dead', at: [113, 1102], start: true }),
    edge('answers', [[8, 680], [8, 408]], { at: [14, 424], start: true }),
  ];
  requestQueues.forEach((queue, i) => {
    const y = 438 + i * 76, e = 776 + i * 76;
    nodes[queue] = { kind: 'queue', x: 40, y, w: 280, h: 62 };
    nodes[errorQueue(queue)] = { kind: 'parked', x: 40, y: e, w: 280, h: 62 };
    edges.push(edge('in/' + queue, [[24, 408], [24, y + 31], [40, y + 31]], {}));
    edges.push(edge('work/' + queue, [[320, y + 31], [334, y + 31], [334, 680]], {}));
    edges.push(edge('error/' + queue, [[24, 742], [24, e + 31], [40, e + 31]], { kind: 'dead' }));
  });
  return { w: 360, h: 1182, nodes, edges, zone: null };
}

function edge(id, points, { kind = 'flow', at = null, start = false }) { return { id, points, kind, at, start }; }

export function layout(narrow) { return narrow ? down() : across(); }

// pathOf draws a line through corners, and rounds them.
export function pathOf(points, radius = 10) {
  let d = `M${points[0].join(' ')}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [before, corner, after] = [points[i - 1], points[i], points[i + 1]];
    d += ` L${toward(corner, before, radius).join(' ')} Q${corner.join(' ')} ${toward(corner, after, radius).join(' ')}`;
  }
  return d + ` L${points.at(-1).join(' ')}`;
}

function toward([x, y], [tx, ty], radius) {
  const length = Math.hypot(tx - x, ty - y);
  const r = Math.min(radius, length / 2);
  return [x + (tx - x) / length * r, y + (ty - y) / length * r];
}
