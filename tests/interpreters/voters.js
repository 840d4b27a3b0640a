// Runs charts by two other libraries: node voters.js charts.json
//
// Writes to votes.json the leaves that are active at the beginning and after each event, or what
// went wrong.

const { readFileSync, writeFileSync } = require('fs')
const { Worker, isMainThread, parentPort } = require('worker_threads')
const scion = require('@scion-scxml/core')
const xstate = require('xstate')

function bySCION(chart) {
  // a plain object would be copied as JSON, without its functions
  const run = new scion.Statechart((_x, _session, _processors, isIn) => {
    const transition = each => ({
      event: each.event || undefined,
      target: each.target.length ? each.target : undefined,
      cond: each.cond ? () => isIn(each.cond) : undefined,
      type: each.internal ? 'internal' : undefined
    })
    const written = state => state.tag === 'history'
      ? { id: state.id, $type: 'history', isDeep: state.deep, transitions: [{ target: state.initial }] }
      : {
          id: state.id,
          $type: state.tag,
          initial: state.initial.length && state.tag !== 'parallel' ? state.initial : undefined,
          states: state.children.map(written),
          transitions: state.transitions.map(transition)
        }
    return written(chart.root)
  })
  run.start()
  const found = [run.getConfiguration().sort()]
  for (const name of chart.events) {
    run.gen({ name })
    found.push(run.getConfiguration().sort())
  }
  return found
}

function byXState(chart) {
  const refer = id => '#' + id
  const transition = each => ({
    target: each.target.length ? each.target.map(refer) : undefined,
    guard: each.cond ? xstate.stateIn(refer(each.cond)) : undefined,
    reenter: !each.internal
  })
  const written = state => {
    if (state.tag === 'history') {
      const target = state.initial.map(refer)
      return { id: state.id, type: 'history', history: state.deep ? 'deep' : 'shallow', target }
    }
    const on = {}
    for (const each of state.transitions.filter(each => each.event)) {
      const event = each.event.replace(/^done\./, 'xstate.done.')
      on[event] = [...(on[event] || []), transition(each)]
    }
    const always = state.transitions.filter(each => !each.event).map(transition)
    const inner = Object.fromEntries(state.children.map(child => [child.id, written(child)]))
    const type = { parallel: 'parallel', final: 'final' }[state.tag]
    const initial = type ? undefined : state.initial[0]
    return { id: state.id, type, initial, states: inner, on, always }
  }
  const actor = xstate.createActor(xstate.createMachine(written(chart.root)))
  const leaves = () => actor.getSnapshot()._nodes
    .filter(node => node.type === 'atomic' || node.type === 'final')
    .map(node => node.id).sort()
  actor.subscribe({ error: () => {} })
  actor.start()
  const found = [leaves()]
  for (const type of chart.events) {
    actor.send({ type })
    found.push(leaves())
  }
  return found
}

function attempted(run, chart) {
  try {
    return run(chart)
  } catch (error) {
    return String(error)
  }
}

const VOTERS = { SCION: bySCION, XState: byXState }

if (!isMainThread) {
  parentPort.on('message', ([name, chart]) => parentPort.postMessage(attempted(VOTERS[name], chart)))
} else {
  vote(JSON.parse(readFileSync(process.argv[2], 'utf8')))
}

async function vote(charts) {
  const ask = asker()
  const votes = []
  for (const chart of charts) {
    votes.push({ SCION: await ask('SCION', chart), XState: await ask('XState', chart) })
  }
  writeFileSync('votes.json', JSON.stringify(votes))
  process.exit()
}

// Returns what asks in another thread: who makes eventless transitions without end is stopped.
function asker() {
  let worker = null
  return (name, chart) => new Promise(resolve => {
    worker = worker || new Worker(__filename)
    const timer = setTimeout(() => {
      worker.terminate()
      worker = null
      resolve('does not come to rest')
    }, 3000)
    worker.once('message', found => {
      clearTimeout(timer)
      resolve(found)
    })
    worker.postMessage([name, chart])
  })
}
