-- Every change of run state is one call of this script: ARGV[1] names the operation, ARGV[2] holds
-- its arguments as JSON, the answer is JSON. Redis runs it alone, so each call is one transaction.
-- Key names are listed in ledger.py. Times are milliseconds of ledger time (see now()).

local TICKET_CAP = 64
local RETRIES, CLAIMS = 3, 20
local BACKOFF_MS, BACKOFF_MAX_MS, AVOID_MS = 5000, 300000, 30000
local KEEP_S = 7 * 86400
local ENDS = {DONE = true, FAILED = true, DEAD = true, CANCELLED = true}

local function text(number) return string.format('%.0f', number) end

local function server_us()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

local function meta(field, default)
  return tonumber(redis.call('HGET', 'farm:meta', field) or default)
end

local function ttl() return meta('ttl', 15000) end

-- Ledger time never runs backwards and stands still while nobody ticks, so a stepped clock or a
-- pause of the server lets no lease expire that its holder could not have renewed.
local function now()
  local server = server_us() / 1000
  local last = redis.call('HGET', 'farm:meta', 'last')
  if not last then
    redis.call('HSET', 'farm:meta', 'last', text(server), 'offset', '0', 'grace', '0')
    return server
  end
  last = tonumber(last)
  return math.min(math.max(server + meta('offset', 0), last), last + ttl() / 2)
end

-- Rises across a loss of Redis as well, because it is never below the server's clock.
local function next_fence()
  local fence = math.max(meta('fence', 0) + 1, server_us())
  redis.call('HSET', 'farm:meta', 'fence', text(fence))
  return text(fence)
end

local function get(key, field) return redis.call('HGET', 'farm:j:' .. key, field) end
local function put(key, ...) redis.call('HSET', 'farm:j:' .. key, ...) end

-- The one place where a state changes: record, counters of every run that wants it, event.
local function move(key, state, cause)
  local old = get(key, 'state')
  for _, run in ipairs(redis.call('SMEMBERS', 'farm:jr:' .. key)) do
    if old then redis.call('HINCRBY', 'farm:run:' .. run, old, -1) end
    redis.call('HINCRBY', 'farm:run:' .. run, state, 1)
    redis.call('EXPIRE', 'farm:run:' .. run, KEEP_S)
    redis.call('EXPIRE', 'farm:rj:' .. run, KEEP_S)
  end
  put(key, 'state', state, 'cause', cause or '', 'changed', text(now()))
  redis.call('XADD', 'farm:ev', 'MAXLEN', '~', '100000', '*', 'key', key, 'state', state,
    'attempt', get(key, 'attempt') or '0', 'owner', get(key, 'owner') or '', 'cause', cause or '')
  for _, record in ipairs({'farm:j:' .. key, 'farm:jr:' .. key}) do
    if ENDS[state] then redis.call('EXPIRE', record, KEEP_S) else redis.call('PERSIST', record) end
  end
end

local function attach(key, run)
  if redis.call('SADD', 'farm:jr:' .. key, run) == 1 then
    redis.call('SADD', 'farm:rj:' .. run, key)
    local state = get(key, 'state')
    if state then redis.call('HINCRBY', 'farm:run:' .. run, state, 1) end
  end
end

local function ready(key, cause)
  local class = get(key, 'class')
  move(key, 'READY', cause)
  redis.call('ZADD', 'farm:r:' .. class, get(key, 'score'), key)
  redis.call('SADD', 'farm:classes', class)
end

local function unready(key)
  local class = get(key, 'class')
  redis.call('ZREM', 'farm:r:' .. class, key)
  redis.call('ZREM', 'farm:delay', key)
end

local function drop_lease(key)
  local fence, owner = get(key, 'fence'), get(key, 'owner')
  if fence then redis.call('ZREM', 'farm:lease', key .. '|' .. fence) end
  if owner then redis.call('SREM', 'farm:own:' .. owner, key) end
  redis.call('HDEL', 'farm:j:' .. key, 'fence', 'owner')
end

-- Jitter from a hash, because Lua's random repeats its seed in every script.
local function backoff(key, infra)
  local base = math.min(BACKOFF_MS * 2 ^ (infra - 2), BACKOFF_MAX_MS)
  local jitter = tonumber(string.sub(redis.sha1hex(key .. infra), 1, 4), 16) / 65535
  return base * (0.75 + jitter / 2)
end

-- An attempt that ended without an answer: try again by cause, or say that we gave up.
local function retry(key, cause, counted)
  local node = get(key, 'node') or ''
  drop_lease(key)
  if redis.call('SCARD', 'farm:jr:' .. key) == 0 then move(key, 'CANCELLED', cause); return 'CANCELLED' end
  local infra = tonumber(get(key, 'infra') or '0')
  if counted then
    infra = infra + 1
    put(key, 'infra', tostring(infra), 'avoid', node, 'avoid_until', text(now() + AVOID_MS))
  end
  if infra > RETRIES or tonumber(get(key, 'attempt')) >= CLAIMS then
    move(key, 'DEAD', cause)
    redis.call('ZADD', 'farm:dead', text(now()), key)
    return 'DEAD'
  end
  if counted and infra > 1 then
    move(key, 'BACKOFF', cause)
    redis.call('ZADD', 'farm:delay', text(now() + backoff(key, infra)), key)
    return 'BACKOFF'
  end
  ready(key, cause)
  return 'READY'
end

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
  local verdicts = {}
  for i, e in ipairs(a.entries) do
    local state = get(e.key, 'state')
    local fresh = not state or state == 'DEAD' or state == 'CANCELLED' or (ENDS[state] and e.again)
    attach(e.key, a.run)
    if fresh then
      local seq = redis.call('HINCRBY', 'farm:meta', 'seq', 1)
      redis.call('ZREM', 'farm:dead', e.key)
      redis.call('HDEL', 'farm:j:' .. e.key, 'profile_key', 'progress', 'avoid')
      put(e.key, 'class', e.class, 'run', a.run, 'spec', e.spec, 'score', text(e.prio * 1e12 + seq),
        'infra', '0', 'attempt', get(e.key, 'attempt') or '0', 'queued', text(now()))
      ready(e.key, 'submit')
      verdicts[i] = 'new'
    elseif ENDS[state] then
      verdicts[i] = 'known'
    else
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
  local state = redis.call('HGET', 'farm:node:' .. a.node, 'state')
  if state and state ~= 'up' then return {none = state} end
  local best, lowest
  for _, class in ipairs(a.classes) do
    local key = first_of(class, a.node)
    local score = key and tonumber(get(key, 'score'))
    if key and (not lowest or score < lowest) then best, lowest = key, score end
  end
  if not best then return {none = 'nothing ready', tickets = wanted(a.classes)} end
  unready(best)
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
      answers[i] = 'OK'
    end
  end
  return answers
end

function op.finish(a)
  if get(a.key, 'fence') ~= a.fence then return 'STALE' end
  if a.state == 'RETRY' then return retry(a.key, a.cause, a.counted) end
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

function op.owners(a)
  local found = {}
  for _, lease in ipairs(redis.call('ZRANGE', 'farm:lease', 0, -1)) do
    local owner = get(string.match(lease, '^(.*)|'), 'owner')
    if owner and string.sub(owner, 1, #a.node + 1) == a.node .. '/' then found[owner] = true end
  end
  local list = {}
  for owner in pairs(found) do list[#list + 1] = owner end
  return list
end

-- A run that nobody waits for any more lets go of its entries; one that another run wants goes on,
-- and one in hand is not interrupted: its result is worth keeping, only a retry would not be.
function op.withdraw(a)
  local verdicts = {}
  for i, key in ipairs(a.keys) do
    local state = get(key, 'state')
    if state and not ENDS[state] and redis.call('SREM', 'farm:jr:' .. key, a.run) == 1 then
      redis.call('HINCRBY', 'farm:run:' .. a.run, state, -1)
      redis.call('HINCRBY', 'farm:run:' .. a.run, 'CANCELLED', 1)
      if state == 'RUNNING' then verdicts[i] = 'running'
      elseif redis.call('SCARD', 'farm:jr:' .. key) > 0 then verdicts[i] = 'shared'
      else unready(key); move(key, 'CANCELLED', 'withdrawn'); verdicts[i] = 'cancelled' end
    else
      verdicts[i] = state or 'unknown'
    end
  end
  return verdicts
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
  local reaped, woken = {}, 0
  if time >= meta('grace', 0) then
    for _, lease in ipairs(redis.call('ZRANGEBYSCORE', 'farm:lease', '-inf', text(time), 'LIMIT', 0, 100)) do
      local key, fence = string.match(lease, '^(.*)|(%d+)$')
      if get(key, 'fence') == fence then
        retry(key, 'worker_lost', true)
        reaped[#reaped + 1] = key
      else
        redis.call('ZREM', 'farm:lease', lease)
      end
    end
  end
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', 'farm:delay', '-inf', text(time), 'LIMIT', 0, 100)) do
    redis.call('ZREM', 'farm:delay', key)
    ready(key, 'due')
    woken = woken + 1
  end
  return {reaped = reaped, woken = woken, tickets = wanted(redis.call('SMEMBERS', 'farm:classes'))}
end

function op.slots()
  local found = {}
  for _, node in ipairs(redis.call('SMEMBERS', 'farm:nodes')) do
    local at = 'farm:node:' .. node
    if now() - tonumber(redis.call('HGET', at, 'heartbeat') or '0') < ttl() then
      for _, slot in ipairs(cjson.decode(redis.call('HGET', at, 'slots') or '[]')) do
        found[#found + 1] = slot
      end
    end
  end
  return found
end

function op.node(a)
  local at = 'farm:node:' .. a.node
  if a.state == 'gone' then
    redis.call('DEL', at)
    redis.call('SREM', 'farm:nodes', a.node)
    return 'gone'
  end
  redis.call('SADD', 'farm:nodes', a.node)
  redis.call('HSET', at, 'heartbeat', text(now()), 'state', a.state)
  if a.slots then redis.call('HSET', at, 'slots', a.slots, 'classes', cjson.encode(a.classes)) end
  return a.state
end

-- cjson writes an empty table as {}, so a list that may be empty travels inside a named field.
local answer = op[ARGV[1]](cjson.decode(ARGV[2]))
return cjson.encode({answer = answer})
