-- Words and numbers for people.
create macro brief(words, most) as
    if(length(trim(regexp_replace(words, '\s+', ' ', 'g'))) <= most,
       trim(regexp_replace(words, '\s+', ' ', 'g')),
       trim(regexp_replace(words, '\s+', ' ', 'g'))[:most - 3] || '...');
create macro short(number) as format('{:.3g}', number);
-- The keys and values of an object; of anything else, none.
create macro as_object(any_value) as if(json_type(any_value) = 'OBJECT', any_value, '{}'::json);
create macro entries(object) as map_entries(as_object(object)::map(varchar, json));
create macro as_map(object) as as_object(object)::map(varchar, varchar);
create macro in_words(object) as array_to_string(list_transform(
    map_entries(as_map(object)), lambda pair: pair.key || ' ' || coalesce(pair.value, 'nothing')), ', ');
create macro about(context) as coalesce(', about ' || nullif(coalesce(context ->> 'post_id',
    if(json_type(context) = 'OBJECT', brief(in_words(context), 80), null)), ''), '');
create macro own_words(object) as coalesce(', ' || nullif(in_words(json_merge_patch(object,
    '{"event":null,"timestamp":null,"round":null,"tick":null,"agent_id":null}')), ''), '');
create macro natural_order(name) as regexp_replace(regexp_replace(name, '(\d+)',
    repeat('0', 20) || '\1', 'g'), '0+(\d{20})', '\1', 'g');
create macro is_list_of_texts(any_value) as json_type(any_value) = 'ARRAY' and coalesce(list_bool_and(
    list_transform(try_cast(any_value as json[]), lambda each: json_type(each) = 'VARCHAR')), true);
-- The order of rounds and ticks; a log may claim numbers of any size.
create macro in_order(round, tick) as round::hugeint * (1 << 24) + tick;
