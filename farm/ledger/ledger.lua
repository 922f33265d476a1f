-- Every change of run state is one call of this script: ARGV[1] names the operation, ARGV[2] holds
-- its arguments as JSON, the answer is JSON. Redis runs it alone, so each call is one transaction.
-- entry.lua and holds.lua stand before it. Key names are listed in __init__.py.

local TICKET_CAP = 64

-- Tickets are hints: as many as there is work, at most the cap, counting those in the queue.
local function wanted(classes)
  local tickets = {}
  for _, class in ipairs(classes) do
    local count = redis.call('ZCARD', 'farm:r:' .. class)
    if count == 0 then redis.call('SREM', 'farm:classes', class) end
    local missing = math.min(count, TICKET_CAP) - redis.call('LLEN', 'farmq:' .. class)
    if missing > 0 then tickets[class] = missing end
  end
  return tickets
end

local function is_elsewhere(class, node)
  for _, other in ipairs(redis.call('SMEMBERS', 'farm:nodes')) do
    local at = 'farm:node:' .. other
    if other ~= node and now() - tonumber(redis.call('HGET', at, 'heartbeat') or '0') < ttl() then
      for _, served in ipairs(cjson.decode(redis.call('HGET', at, 'classes') or '[]')) do
        if served == class then return true end
      end
    end
  end
  return false
end

local op = {}

function op.setup(a)
  redis.call('HSET', 'farm:meta', 'ttl', tostring(a.ttl_ms))
  return now()
end

function op.submit(a)
  if not a.here and not redis.call('ZSCORE', 'farm:open', a.run) then
    redis.call('ZADD', 'farm:open', redis.call('HINCRBY', 'farm:meta', 'seq', 1), a.run)
  end
  local verdicts = {}
  for i, e in ipairs(a.entries) do
    local state = get(e.key, 'state')
    if not state or state == 'DEAD' or state == 'CANCELLED' or (ENDS[state] and e.again) then
      arm(e, a.run)
      verdicts[i] = 'new'
    elseif ENDS[state] then
      attach(e.key, a.run)
      verdicts[i] = 'known'
    else
      join(e, a.run)
      verdicts[i] = 'shared'
    end
  end
  return verdicts
end

local function first_of(class, node)
  local window = redis.call('ZRANGE', 'farm:r:' .. class, 0, 15)
  for _, key in ipairs(window) do
    local avoided = get(key, 'avoid') == node and tonumber(get(key, 'avoid_until') or '0') > now()
    if not (avoided and is_elsewhere(class, node)) then return key end
  end
end

function op.claim(a)
  local state, full = unpack(redis.call('HMGET', 'farm:node:' .. a.node, 'state', 'full'))
  if state and state ~= 'up' then return {none = state} end
  if full == '1' then return {none = 'its spool is full'} end
  local bar = barred(a.node, a.slot)
  if bar then return {none = bar} end
  local best, lowest
  for _, class in ipairs(a.classes) do
    local key = first_of(class, a.node)
    local score = key and tonumber(get(key, 'score'))
    if key and (not lowest or score < lowest) then best, lowest = key, score end
  end
  if not best then return {none = 'nothing ready', tickets = wanted(a.classes)} end
  unready(best)
  redis.call('HDEL', 'farm:j:' .. best, 'progress')
  local fence = next_fence()
  put(best, 'owner', a.owner, 'node', a.node, 'fence', fence, 'started', text(now()),
    'attempt', tostring(tonumber(get(best, 'attempt')) + 1))
  redis.call('ZADD', 'farm:lease', text(now() + ttl()), best .. '|' .. fence)
  redis.call('SADD', 'farm:own:' .. a.owner, best)
  move(best, 'RUNNING', 'claim')
  return {
    key = best, fence = fence, spec = get(best, 'spec'), run = get(best, 'run'),
    attempt = tonumber(get(best, 'attempt')), profile_key = get(best, 'profile_key') or '',
    waited_ms = now() - tonumber(get(best, 'queued')), tickets = wanted(a.classes),
  }
end

function op.beat(a)
  local answers = {}
  for i, held in ipairs(a.held) do
    local fence = get(held.key, 'fence')
    if not redis.call('HGET', 'farm:j:' .. held.key, 'state') then answers[i] = 'LOST unknown'
    elseif fence ~= held.fence then answers[i] = 'LOST taken'
    else
      redis.call('ZADD', 'farm:lease', text(now() + ttl()), held.key .. '|' .. fence)
      if held.progress ~= '' then put(held.key, 'progress', held.progress) end
      if held.profile_key ~= '' then put(held.key, 'profile_key', held.profile_key) end
      answers[i] = get(held.key, 'cancel') == 'kill' and 'CANCEL' or 'OK'
    end
  end
  return answers
end

function op.finish(a)
  if get(a.key, 'fence') ~= a.fence then return 'STALE' end
  if a.state == 'UPLOADING' then
    hand_over(a.key, a.owner, a.profile_key)
    move(a.key, 'UPLOADING', a.cause)
    return 'UPLOADING'
  end
  if a.state == 'LATER' then return postpone(a.key, a.cause, POSTPONED_MS) end
  if a.state == 'BACK' then return postpone(a.key, a.cause) end
  if a.state == 'RETRY' then return retry(a.key, a.cause, a.counted) end
  -- Its child was ended for a cancel: if somebody has asked since, that costs the entry no try.
  if a.state == 'CANCELLED' then return retry(a.key, a.cause, false) end
  drop_lease(a.key)
  put(a.key, 'profile_key', a.profile_key)
  move(a.key, a.state, a.cause)
  return a.state
end

function op.release(a)
  local states = {}
  for _, key in ipairs(redis.call('SMEMBERS', 'farm:own:' .. a.owner)) do
    states[key] = retry(key, a.cause, a.counted)
  end
  return states
end

-- A run lets go of its entries: one that another run wants goes on, and one in hand is not
-- interrupted unless asked: its result is worth keeping, only a retry would not be.
function op.cancel(a)
  local verdicts = {}
  for i, key in ipairs(a.keys) do verdicts[i] = cancel(key, a.run, a.running) end
  return verdicts
end

function op.note_resubmission(a)
  return count(a.run, 'resubmitted', 1)
end

local function due(name, time)
  return redis.call('ZRANGEBYSCORE', name, '-inf', text(time), 'LIMIT', 0, 100)
end

function op.tick()
  now()
  local server = server_us() / 1000
  local offset, last = meta('offset', 0), meta('last', 0)
  local time = server + offset
  if time < last then
    offset, time = offset + (last - time), last
  elseif time > last + ttl() / 2 then
    offset, time = offset - (time - last), last
    redis.call('HSET', 'farm:meta', 'grace', text(last + ttl()))
  end
  redis.call('HSET', 'farm:meta', 'last', text(time), 'offset', text(offset))
  moment = time
  local reaped, woken = {}, 0
  if time >= meta('grace', 0) then
    for _, lease in ipairs(due('farm:lease', time)) do
      local key, fence = string.match(lease, '^(.*)|(%d+)$')
      if get(key, 'fence') == fence then
        retry(key, 'worker_lost', true)
        reaped[#reaped + 1] = key
      else
        redis.call('ZREM', 'farm:lease', lease)
      end
    end
  end
  for _, key in ipairs(due('farm:delay', time)) do
    redis.call('ZREM', 'farm:delay', key)
    ready(key, 'due')
    woken = woken + 1
  end
  return {reaped = reaped, woken = woken, tickets = wanted(redis.call('SMEMBERS', 'farm:classes'))}
end

function op.node(a)
  local at = 'farm:node:' .. a.node
  if a.state == 'gone' then
    redis.call('DEL', at)
    redis.call('SREM', 'farm:nodes', a.node)
    return {}
  end
  redis.call('SADD', 'farm:nodes', a.node)
  redis.call('HSET', at, 'heartbeat', text(now()), 'seen', text(server_us() / 1000),
    'state', a.state)
  if a.spool then redis.call('HSET', at, 'spool', a.spool, 'full', a.full and '1' or '0') end
  if a.slots then redis.call('HSET', at, 'slots', a.slots, 'classes', cjson.encode(a.classes)) end
  return holds_of(a.node)
end

function op.hold(a)
  put_hold(a.target, a.about, {kind = a.kind, note = a.note, by = a.by})
  return a.kind
end

-- The node has heard that a device is cleared, and what it kept of it is gone.
function op.settle(a)
  return redis.call('HDEL', 'farm:hold', a.target .. '|health')
end

op.quarantine = quarantine

-- cjson writes an empty table as {}, so a list that may be empty travels inside a named field.
local answer = op[ARGV[1]](cjson.decode(ARGV[2]))
settle_counted()
return cjson.encode({answer = answer})
