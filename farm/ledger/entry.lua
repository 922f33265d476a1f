-- The life of one entry: its record, the runs that want it, its lease, and how it changes state.
-- Times are milliseconds of ledger time (see now()). ledger.lua stands behind it.

local RETRIES, CLAIMS = 3, 20
local BACKOFF_MS, BACKOFF_MAX_MS, AVOID_MS = 5000, 300000, 30000
local KEEP_S = 7 * 86400
local POSTPONED_MS = 30000
local OPEN = {'READY', 'RUNNING', 'UPLOADING', 'BACKOFF'}
local ENDS = {DONE = true, FAILED = true, DEAD = true, CANCELLED = true}
local KEPT = {'class', 'prio', 'state', 'attempt', 'infra', 'cause', 'node', 'profile_key',
  'started', 'changed', 'at'}

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
-- pause of the server lets no lease expire that its holder could not have renewed. A call has one.
local moment
local function now()
  if moment then return moment end
  moment = server_us() / 1000
  local last = redis.call('HGET', 'farm:meta', 'last')
  if last then
    last = tonumber(last)
    moment = math.min(math.max(moment + meta('offset', 0), last), last + ttl() / 2)
  else
    redis.call('HSET', 'farm:meta', 'last', text(moment), 'offset', '0', 'grace', '0')
  end
  return moment
end

-- Rises across a loss of Redis as well, because it is never below the server's clock.
local function next_fence()
  local fence = math.max(meta('fence', 0) + 1, server_us())
  redis.call('HSET', 'farm:meta', 'fence', text(fence))
  return text(fence)
end

local function get(key, field) return redis.call('HGET', 'farm:j:' .. key, field) end
local function put(key, ...) redis.call('HSET', 'farm:j:' .. key, ...) end

local counted = {}
local function count(run, field, by)
  counted[run] = true
  return redis.call('HINCRBY', 'farm:run:' .. run, field, by)
end

-- What has ended is kept for a week; a run that waits for something, for as long as that takes.
local function settle_counted()
  for run in pairs(counted) do
    local open = 0
    for _, n in ipairs(redis.call('HMGET', 'farm:run:' .. run, unpack(OPEN))) do
      open = open + tonumber(n or 0)
    end
    for _, name in ipairs({'farm:run:' .. run, 'farm:rj:' .. run}) do
      if open > 0 then redis.call('PERSIST', name) else redis.call('EXPIRE', name, KEEP_S) end
    end
  end
end

local function event(key, state, cause, run)
  redis.call('XADD', 'farm:ev', 'MAXLEN', '~', '100000', '*', 'key', key, 'run', run,
    'state', state, 'attempt', get(key, 'attempt') or '0', 'owner', get(key, 'owner') or '',
    'cause', cause)
end

-- The one place where a state changes: record, counters of every run that wants it, event.
local function move(key, state, cause)
  local old = get(key, 'state')
  put(key, 'state', state, 'cause', cause, 'changed', text(now()),
    'at', text(server_us() / 1000))
  for _, run in ipairs(redis.call('SMEMBERS', 'farm:jr:' .. key)) do
    if old then count(run, old, -1) end
    count(run, state, 1)
  end
  event(key, state, cause, '')
  for _, record in ipairs({'farm:j:' .. key, 'farm:jr:' .. key}) do
    if ENDS[state] then redis.call('EXPIRE', record, KEEP_S) else redis.call('PERSIST', record) end
  end
end

-- A run wants an entry; what it kept of an earlier time makes way for the entry as it stands.
local function attach(key, run)
  if redis.call('SADD', 'farm:jr:' .. key, run) == 0 then return end
  local kept = redis.call('HGET', 'farm:rj:' .. run, key)
  if kept and kept ~= '' then count(run, cjson.decode(kept).state, -1) end
  redis.call('HSET', 'farm:rj:' .. run, key, '')
  local state = get(key, 'state')
  if state then count(run, state, 1) end
end

-- A run keeps an entry as it stands, but for the changes; what becomes of it now is for others.
local function detach(key, run, changes)
  for i, value in ipairs(redis.call('HMGET', 'farm:j:' .. key, unpack(KEPT))) do
    changes[KEPT[i]] = changes[KEPT[i]] or value or nil
  end
  redis.call('SREM', 'farm:jr:' .. key, run)
  redis.call('SREM', 'farm:jc:' .. key, run)
  redis.call('HSET', 'farm:rj:' .. run, key, cjson.encode(changes))
end

-- The runs that want an entry for more than the attempt in hand.
local function wanting(key) return redis.call('SDIFF', 'farm:jr:' .. key, 'farm:jc:' .. key) end

-- One of several runs wants an entry no more: for it the entry is CANCELLED, the others go on.
local function let_go(key, run)
  count(run, get(key, 'state'), -1)
  count(run, 'CANCELLED', 1)
  detach(key, run,
    {state = 'CANCELLED', cause = 'cancelled', profile_key = '', changed = text(now()),
      at = text(server_us() / 1000)})
  event(key, 'CANCELLED', 'cancelled', run)
  -- The next profile must not carry the name of a run that has let go.
  if get(key, 'run') == run then put(key, 'run', wanting(key)[1]) end
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
  redis.call('HDEL', 'farm:j:' .. key, 'fence', 'owner', 'cancel')
  redis.call('DEL', 'farm:jc:' .. key)
end

-- Jitter from a hash, because Lua's random repeats its seed in every script.
local function backoff(key, infra)
  local base = math.min(BACKOFF_MS * 2 ^ (infra - 2), BACKOFF_MAX_MS)
  local jitter = tonumber(string.sub(redis.sha1hex(key .. infra), 1, 4), 16) / 65535
  return base * (0.75 + jitter / 2)
end

-- An attempt that ended without an answer: try again by cause, or say that we gave up. A run that
-- wanted no more than this attempt lets go; if no other is left, the entry has ended.
local function retry(key, cause, counted, wait_ms)
  local node = get(key, 'node') or ''
  if get(key, 'cancel') then
    drop_lease(key)
    move(key, 'CANCELLED', 'cancelled')
    return 'CANCELLED'
  end
  for _, run in ipairs(redis.call('SMEMBERS', 'farm:jc:' .. key)) do let_go(key, run) end
  drop_lease(key)
  local infra = tonumber(get(key, 'infra') or '0')
  if counted then
    infra = infra + 1
    put(key, 'infra', tostring(infra), 'avoid', node, 'avoid_until', text(now() + AVOID_MS))
  end
  local poisoned = get(key, 'poisoned')
  if poisoned or infra > RETRIES or tonumber(get(key, 'attempt')) >= CLAIMS then
    move(key, 'DEAD', poisoned and 'poisoned' or cause)
    redis.call('ZADD', 'farm:dead', text(now()), key)
    return 'DEAD'
  end
  if counted and infra > 1 then wait_ms = backoff(key, infra) end
  if wait_ms then
    move(key, 'BACKOFF', cause)
    redis.call('ZADD', 'farm:delay', text(now() + wait_ms), key)
    return 'BACKOFF'
  end
  ready(key, cause)
  return 'READY'
end

-- Nothing of the attempt has begun, because what it needs is away: it does not count as one.
local function postpone(key, cause, wait_ms)
  put(key, 'attempt', tostring(tonumber(get(key, 'attempt')) - 1))
  return retry(key, cause, false, wait_ms)
end

-- The profile lies in the node's spool: the lease is the uploader's, the device is free, and the
-- result counts for every run that has not let go by now.
local function hand_over(key, owner, profile_key)
  redis.call('SREM', 'farm:own:' .. get(key, 'owner'), key)
  redis.call('SADD', 'farm:own:' .. owner, key)
  redis.call('ZADD', 'farm:lease', text(now() + ttl()), key .. '|' .. get(key, 'fence'))
  put(key, 'owner', owner, 'profile_key', profile_key)
  redis.call('HDEL', 'farm:j:' .. key, 'progress')
  if get(key, 'cancel') then put(key, 'cancel', '1') end
end

-- A new life of an entry belongs to who asks for it; other runs keep what they had of the last.
local function arm(e, run)
  for _, other in ipairs(redis.call('SMEMBERS', 'farm:jr:' .. e.key)) do
    if other ~= run then detach(e.key, other, {}) end
  end
  attach(e.key, run)
  local seq = redis.call('HINCRBY', 'farm:meta', 'seq', 1)
  redis.call('ZREM', 'farm:dead', e.key)
  redis.call('HDEL', 'farm:j:' .. e.key, 'profile_key', 'progress', 'avoid', 'node', 'started',
    'poisoned')
  put(e.key, 'class', e.class, 'run', run, 'spec', e.spec, 'prio', text(e.prio),
    'score', text(e.prio * 1e12 + seq), 'infra', '0', 'attempt', get(e.key, 'attempt') or '0',
    'queued', text(now()))
  ready(e.key, 'submit')
end

-- A run asks for an entry in flight: a cancel is over, and the better priority counts.
local function join(e, run)
  attach(e.key, run)
  redis.call('SREM', 'farm:jc:' .. e.key, run)
  redis.call('HDEL', 'farm:j:' .. e.key, 'cancel')
  local better = tonumber(get(e.key, 'prio')) - e.prio
  if better > 0 then
    local score = text(tonumber(get(e.key, 'score')) - better * 1e12)
    put(e.key, 'prio', text(e.prio), 'score', score)
    redis.call('ZADD', 'farm:r:' .. get(e.key, 'class'), 'XX', score, e.key)
  end
end

local function cancel(key, run, running)
  local kept, state = redis.call('HGET', 'farm:rj:' .. run, key), get(key, 'state')
  if kept and kept ~= '' then return cjson.decode(kept).state end
  if not kept or not state then return 'unknown' end
  if ENDS[state] then return state end
  for _, other in ipairs(wanting(key)) do
    if other ~= run then let_go(key, run); return 'shared' end
  end
  if state ~= 'RUNNING' and state ~= 'UPLOADING' then
    unready(key)
    move(key, 'CANCELLED', 'cancelled')
    return 'cancelled'
  end
  redis.call('SADD', 'farm:jc:' .. key, run)
  if state == 'UPLOADING' then running = false end
  if not running and get(key, 'cancel') ~= 'kill' then put(key, 'cancel', '1'); return 'running' end
  put(key, 'cancel', 'kill')
  -- A message may be lost; the next beat of the node says it again.
  redis.call('PUBLISH', 'farm:tell:' .. get(key, 'node'),
    cjson.encode({['do'] = 'cancel', key = key, fence = get(key, 'fence')}))
  return 'asked'
end
